"""History checker: clients use two services over HTTP while faults hit the services and a replica set.

`recording.py` keeps what was sent and answered, `writers.py` and `readers.py` are the clients, `faults.py`
is the schedule of faults, and `checks.py` compares what is finally shown with what was acknowledged.
"""
