"""Reads a site of the reference service, or another Kalends."""
