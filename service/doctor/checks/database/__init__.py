"""Checks of what there is once in a database, or little of."""
