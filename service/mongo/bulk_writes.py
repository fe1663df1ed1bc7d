"""Writes of several documents with one command, each of which succeeds or fails by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bson.errors import InvalidDocument
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError, DocumentTooLarge, DuplicateKeyError, WriteError

from service.mongo.client import DUPLICATE, Collection, Row, Session

GROUP_COMMIT: dict[str, Any] = {"in_flight": 2, "max_batch": 32, "slow_seconds": 0.5}
"""How concurrent writes are grouped into commands. Later ones wait at most `slow_seconds` for a command: one
of its records may be locked by a transaction."""
IMMUTABLE = 66
"""The server's error code for a change of an id."""
UNSTORABLE = (DocumentTooLarge, InvalidDocument, WriteError)
"""A document is refused, by the driver or by the server."""


class NoMatch(Exception):
    """No document matches the query of an update."""


@dataclass(frozen=True, eq=False)
class Update:
    """An update of one document, which the query identifies by its id and version."""

    query: Row
    change: Row


async def insert_each(
    collection: Collection, rows: Sequence[Row], session: Session | None = None
) -> dict[Any, Exception]:
    """Insert rows; return the error that a single insert would have raised for each that failed, by id. In a
    transaction the first one is raised."""
    try:
        if rows:
            await collection.insert_many(rows, ordered=False, session=session)
    except BulkWriteError as error:
        failed = {rows[at]["_id"]: one for at, one in _failures(error).items()}
        if session:
            raise next(iter(failed.values())) from None
        return failed
    except UNSTORABLE:
        if session:
            raise
        return await _insert_one_by_one(collection, rows)
    return {}


async def update_each(collection: Collection, updates: Sequence[Update]) -> dict[Update, Exception]:
    """Update documents; return the error of each that failed. If there is only one update, its error is
    raised instead."""
    try:
        if len(updates) == 1:
            await update_one(collection, updates[0])
        else:
            await collection.bulk_write([_failing_without_match(each) for each in updates], ordered=False)
    except BulkWriteError as error:
        return {updates[at]: one for at, one in _failures(error).items()}
    return {}


async def update_one(collection: Collection, update: Update, session: Session | None = None) -> None:
    done = await collection.update_one(update.query, update.change, session=session)
    if not done.matched_count:
        raise NoMatch


def _failing_without_match(update: Update) -> UpdateOne:
    """MongoDB reports which updates of a command fail, but not which of them match nothing. So those that
    match nothing must fail: as an upsert that can never be inserted, since it would change its own id."""
    return UpdateOne(update.query, update.change | {"$setOnInsert": {"_id": None}}, upsert=True)


def _failures(error: BulkWriteError) -> dict[int, Exception]:
    """The errors of single writes, by their positions; raises the error if it concerns all of them."""
    if error.details["writeConcernErrors"] or error.has_error_label("TransientTransactionError"):
        raise error
    return {one["index"]: _to_exception(one) for one in error.details["writeErrors"]}


def _to_exception(write_error: Row) -> Exception:
    if write_error["code"] == IMMUTABLE:
        return NoMatch()
    kind = DuplicateKeyError if write_error["code"] == DUPLICATE else WriteError
    return kind(write_error["errmsg"], write_error["code"], write_error)


async def _insert_one_by_one(collection: Collection, rows: Sequence[Row]) -> dict[Any, Exception]:
    """The driver refuses a document: the others must not fail with it."""
    failed: dict[Any, Exception] = {}
    for row in rows:
        try:
            await collection.insert_one(row)
        except UNSTORABLE as error:
            if not violates(error, row, "_id"):  # otherwise it was inserted with the others
                failed[row["_id"]] = error
    return failed


def violates(error: Exception, row: Row, field: str) -> bool:
    """Whether a row was refused because its value of this field is taken; the field has a unique index."""
    taken = (error.details or {}).get("keyValue", {}) if isinstance(error, DuplicateKeyError) else {}
    return field in taken and taken[field] == row.get(field)


async def insert_missing(collection: Collection, rows: Sequence[Row]) -> list[Any]:
    """Insert the rows whose unique values are not taken; return the ids of the others."""
    failed = await insert_each(collection, rows)
    for error in failed.values():
        if not isinstance(error, DuplicateKeyError):
            raise error
    return list(failed)
