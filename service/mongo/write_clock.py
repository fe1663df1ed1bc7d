"""The write clock of the replica set: the time of the last majority-committed write, by which a process knows
whether there is anything new."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep
from typing import Any, NamedTuple

import pymongo.database
from bson import ObjectId, Timestamp
from pymongo.errors import AutoReconnect, ConfigurationError
from pymongo.topology_description import TopologyDescription

from service.mongo.hello import Address, HelloConnection

RETRY_SECONDS = 0.05
MAX_WAIT_SECONDS = 5.0
"""How long to wait for a new primary to commit a first write of its own term."""
MAX_UNCOMMITTED_SECONDS = 1.5
"""A primary that has writes but commits none for longer than this has lost its majority."""
PRIMARY = "RSPrimary"
"""The driver's name for the type of a server."""
Database = pymongo.database.Database[dict[str, Any]]


class Clock(NamedTuple):
    """The election that made the server primary, and the time of its last majority-committed write."""

    election: ObjectId
    time: Timestamp


class WriteClock:
    """The clock as a process has read it last."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.last: Clock | None = None
        """The clock up to which all changes were read; the change feed sets it."""
        self._ahead = timedelta(0)
        """How far the clock of this machine was ahead of that of the primary, when that was asked last."""
        self._uncommitted: tuple[Timestamp, float] | None = (
            None  # last commit, and since when nothing followed
        )
        self._has_lost_majority = False
        self._topology: TopologyDescription | None = None  # what the driver knew, and what follows from it
        self._elections: set[ObjectId | None] = set()
        self._primary: Address | None = None
        self._connection = HelloConnection()

    async def read(self) -> Clock:
        """Read the clock, with the driver if the primary is not known or cannot be asked directly."""
        self._learn_topology()
        reply = await self._connection.hello(self._primary) if self._primary else None
        if reply is None or not _is_trusted(reply):
            reply = await asyncio.to_thread(_hello, self._database)
        return self.observe(reply)

    def close(self) -> None:
        self._connection.close()

    def end(self) -> None:
        self._connection.end()

    def observe(self, reply: Mapping[str, Any]) -> Clock:
        """Return the clock in a reply of the primary, and note whether it still commits writes."""
        clock, written = _clock_of(reply), reply["lastWrite"]["opTime"]["ts"]
        self._ahead = _now() - reply["localTime"]
        # The only member of a set never loses its majority, but its disk may be slow.
        if written == clock.time or len(reply.get("hosts", ())) < 2:
            self._uncommitted = None
        elif self._uncommitted is None or self._uncommitted[0] != clock.time:
            self._uncommitted = clock.time, monotonic()
        since = self._uncommitted and self._uncommitted[1]
        self._has_lost_majority = since is not None and monotonic() - since > MAX_UNCOMMITTED_SECONDS
        return clock

    @property
    def now(self) -> datetime:
        """The time by the clock of the primary, in UTC."""
        return _now() - self._ahead

    @property
    def has_lost_primary(self) -> bool:
        """Whether there is no primary any more, a new one that has not committed a write yet, or one that
        cannot commit writes any more."""
        return self.last is not None and (self._has_lost_majority or not self.knows_primary)

    @property
    def knows_primary(self) -> bool:
        """Whether the clock was read from the primary to which the driver sends commands now. The
        driver never returns to the primary of an earlier election."""
        self._learn_topology()
        return self.last is not None and self.last.election in self._elections

    def _learn_topology(self) -> None:
        client = self._database.client
        if (topology := client.topology_description) is self._topology:
            return
        servers = topology.server_descriptions().values()
        self._topology, self._elections = topology, {server.election_id for server in servers}
        primaries = [server.address for server in servers if server.server_type_name == PRIMARY]
        # Through TLS only the driver can ask: it knows the certificates.
        self._primary = primaries[0] if primaries and not uses_tls(client) else None


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def uses_tls(client: pymongo.MongoClient[Any]) -> bool:
    return client.options.pool_options._ssl_context is not None


def read_clock(database: Database) -> Clock:
    """Read the clock of the replica set (blocking)."""
    return _clock_of(_hello(database))


def _hello(database: Database) -> dict[str, Any]:
    """What the primary says, once it has committed a write of its own term: until then its majority reads may
    be older than writes that were acknowledged before it was elected."""
    deadline = monotonic() + MAX_WAIT_SECONDS
    while True:
        reply = database.command("hello")
        if "setName" not in reply:
            raise ConfigurationError(
                "KALENDS_MONGODB_URI must name a replica set, not mongos or a single mongod"
            )
        if _is_trusted(reply):
            return reply
        if monotonic() >= deadline:
            raise AutoReconnect("no primary has committed a write of its own term")
        sleep(RETRY_SECONDS)


def _is_trusted(reply: Mapping[str, Any]) -> bool:
    """Whether it comes from a primary that has committed a write of its own term."""
    if not reply.get("isWritablePrimary") or "setName" not in reply:
        return False
    written = reply["lastWrite"]
    return "majorityOpTime" in written and bool(written["majorityOpTime"]["t"] >= written["opTime"]["t"])


def _clock_of(reply: Mapping[str, Any]) -> Clock:
    return Clock(reply["electionId"], reply["lastWrite"]["majorityOpTime"]["ts"])
