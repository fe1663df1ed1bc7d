"""History checker: clients use two services over HTTP while faults hit the services and a replica set.

- `cluster.py`, `services.py`, `processes.py`: three mongod and two services, which are killed and paused.
- `creating.py`, `updating.py`, `deleting.py`: the operations of the writers in `writers.py`. `readers.py`
  only reads. All of them send requests with `requests.py`.
- `recording.py`, `entries.py`: what was sent and acknowledged. `observing.py` compares every record that any
  answer shows with it, at once.
- `faults.py`: the faults, in an order that the seed decides.
- `checks.py`, `lists.py`, `snapshot.py`: after the faults, everything that both services show is compared
  with what was acknowledged, and with itself.
- `run.py` puts it together; `test_history.py` is the test.

It uses nothing of the store: only the API, the command line of the service, and mongod.
"""
