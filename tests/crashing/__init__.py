"""Crash injection: the service and its commands die by SIGKILL between any two database calls."""
