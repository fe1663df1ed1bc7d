"""Kalends beside its limits and its peers, measured in one run."""
