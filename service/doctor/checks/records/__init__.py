"""Checks of records, in batches of one kind."""
