"""Reading and writing records, one at a time or in batches."""
