"""Reads iCalendar files."""
