"""Write clock: the time of the last majority-committed write, which tells whether there is anything new."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

from pymongo.database import Database
from pymongo.errors import AutoReconnect

Clock = tuple[int, int, int]
"""Election term, seconds and increment of a write."""
RETRY_SECONDS = 0.05
MAX_WAIT_SECONDS = 5.0
"""How long to wait for a new primary to commit a first write of its own term."""


def read_clock(database: Database[dict[str, Any]]) -> Clock | None:
    """Read the clock of the replica set (blocking); None behind mongos: it would be that of one shard."""
    deadline = monotonic() + MAX_WAIT_SECONDS
    while True:
        said = database.command("hello")
        if "setName" not in said:
            return None
        committed = said["lastWrite"].get("majorityOpTime")
        # Until a new primary has committed a write of its own term, its majority reads may be older than
        # writes that were acknowledged before it was elected.
        if said["isWritablePrimary"] and committed and committed["t"] >= said["lastWrite"]["opTime"]["t"]:
            return (committed["t"], committed["ts"].time, committed["ts"].inc)
        if monotonic() >= deadline:
            raise AutoReconnect("no primary has committed a write of its own term")
        sleep(RETRY_SECONDS)
