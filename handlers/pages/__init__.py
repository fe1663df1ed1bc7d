"""The web pages: a calendar to look at."""
