"""Questions about all events at one moment."""

from __future__ import annotations

from typing import Any

import pymongo
from bson import Timestamp

from schemas.event import EVENT
from service.store.client import Database

Row = dict[str, Any]
PATIENCE = 60
"""Seconds that it may take: the first count of a long list reads its index from disk."""
MOST = 10_000
"""Rows of an answer."""


class TooMany(Exception):
    """There are more rows than an answer has."""


async def snapshot(database: Database, *pipelines: list[Row]) -> tuple[list[Row], Timestamp]:
    """What the pipelines find, and when that was so."""
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
