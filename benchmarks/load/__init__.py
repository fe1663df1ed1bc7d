"""The load generator, and the writers that run beside it."""
