"""Log lines for slow calls to MongoDB: what was asked, without the values, which are users' data."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from service.http.request_ids import CURRENT_ID

log = logging.getLogger("kalends.mongodb")
LINE_FORMAT = "slow call: %s %s %.2f ms, %s documents, %s, request %s"
OF_THE_DRIVER = frozenset(
    ("$clusterTime", "$db", "$readPreference", "autocommit", "cursor", "lsid", "maxTimeMS", "ordered")
) | {"readConcern", "startTransaction", "txnNumber", "writeConcern"}
"""Fields of commands that say nothing about what was asked."""
MAX_ITEMS = 20
"""Items of a list, and fields of a document, that are looked at."""
MAX_CHARS = 2000


class SlowCall(NamedTuple):
    """A command, its collection, how long it took, its document, and the reply."""

    name: str
    collection: str
    milliseconds: float
    command: Mapping[str, Any]
    reply: Mapping[str, Any]


def log_slow_call(call: SlowCall) -> None:
    """Log a call with the id of the request for which it was made. How many documents the server has examined
    is not in its reply, so the line tells how many it has returned or written."""
    fields = {
        "command": call.name,
        "collection": call.collection or "-",
        "milliseconds": round(call.milliseconds, 2),
        "documents": documents_of(call.reply),
        "shape": json.dumps(shape_of_command(call))[:MAX_CHARS],
        "request_id": CURRENT_ID.get(),
    }
    log.warning(LINE_FORMAT, *fields.values(), extra={"fields": fields})


def documents_of(reply: Mapping[str, Any]) -> int:
    """The number of documents that a reply contains, or says that were matched or written."""
    cursor = reply.get("cursor")
    if isinstance(cursor, Mapping):
        return len(cursor.get("firstBatch", cursor.get("nextBatch", ())))
    number = reply.get("n", 0)
    return number if isinstance(number, int) else 0


def shape_of_command(call: SlowCall) -> Any:
    left_out = OF_THE_DRIVER | {call.name, "collection"}
    return shape_of({name: value for name, value in call.command.items() if name not in left_out})


def shape_of(value: Any) -> Any:
    """Field names and operators, with `?` for every value. A list has each of its shapes once."""
    if isinstance(value, Mapping):
        return {name: shape_of(one) for name, one in islice(value.items(), MAX_ITEMS)}
    if isinstance(value, (list, tuple)):
        shapes: list[Any] = []
        for shape in map(shape_of, islice(value, MAX_ITEMS)):
            if shape not in shapes:
                shapes.append(shape)
        return shapes
    return "?"
