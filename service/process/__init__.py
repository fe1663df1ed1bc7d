"""The serving process and its workers: start, maintenance and shutdown."""
