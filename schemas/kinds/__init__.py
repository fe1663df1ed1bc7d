"""The five kinds of records, and what posts and terms have in common."""
