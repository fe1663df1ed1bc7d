"""Write clock: the time of the last majority-committed write, which tells whether there is anything new."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any, NamedTuple

from bson import ObjectId, Timestamp
from pymongo.database import Database
from pymongo.errors import AutoReconnect, ConfigurationError

RETRY_SECONDS = 0.05
MAX_WAIT_SECONDS = 5.0
"""How long to wait for a new primary to commit a first write of its own term."""


class Clock(NamedTuple):
    """The election that made the server primary, and the time of its last majority-committed write."""

    election: ObjectId
    time: Timestamp


def read_clock(database: Database[dict[str, Any]]) -> Clock:
    """Read the clock of the replica set (blocking)."""
    deadline = monotonic() + MAX_WAIT_SECONDS
    while True:
        said = database.command("hello")
        if "setName" not in said:
            raise ConfigurationError(
                "KALENDS_MONGODB_URI must name a replica set, not mongos or a single mongod"
            )
        committed = said["lastWrite"].get("majorityOpTime")
        # Until a new primary has committed a write of its own term, its majority reads may be older than
        # writes that were acknowledged before it was elected.
        if said["isWritablePrimary"] and committed and committed["t"] >= said["lastWrite"]["opTime"]["t"]:
            return Clock(said["electionId"], committed["ts"])
        if monotonic() >= deadline:
            raise AutoReconnect("no primary has committed a write of its own term")
        sleep(RETRY_SECONDS)
