"""List pages and their totals."""
