"""Benchmarks that compare Kalends with its upper limits and its peers in one run."""
