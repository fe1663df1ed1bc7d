"""`kalends doctor`: compares everything that is stored twice or computed with what it should be.

A check is data: a name, what it finds and how that is repaired, and a function that finds it. The runner
(`runner.py`) reads the records in batches, reports only what is still wrong when it is read again after the
background work, and repairs it if it is as it was read.
"""
