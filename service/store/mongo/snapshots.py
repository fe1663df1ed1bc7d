"""Aggregations over events at a single point in time."""

from __future__ import annotations

from typing import Any

import pymongo
from bson import Timestamp

from schemas.event import EVENT
from service.store.mongo.client import Database

Row = dict[str, Any]
PATIENCE = 60
"""Timeout in seconds: the first count of a long list reads its index from disk."""
MOST = 10_000
"""Maximum number of rows in a result."""


class TooMany(Exception):
    """The result would have more rows than allowed."""


async def snapshot(database: Database, *pipelines: list[Row]) -> tuple[list[Row], Timestamp]:
    """Run pipelines on one snapshot; return their rows and the time of the snapshot."""
    first, *others = pipelines
    united = [{"$unionWith": {"coll": EVENT.plural, "pipeline": other}} for other in others]
    with pymongo.timeout(PATIENCE):
        said = await database.command(
            "aggregate",
            EVENT.plural,
            pipeline=[*first, *united],
            cursor={"batchSize": MOST},
            readConcern={"level": "snapshot"},
        )
        if left := said["cursor"]["id"]:
            await database.command("killCursors", EVENT.plural, cursors=[left])
            raise TooMany
    return said["cursor"]["firstBatch"], said["cursor"]["atClusterTime"]
