"""Minimal servers that show how fast a service can be at most on this machine."""
