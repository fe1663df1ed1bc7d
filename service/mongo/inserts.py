"""Inserts of several documents, each of which succeeds or fails by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson.errors import InvalidDocument
from pymongo.errors import BulkWriteError, DocumentTooLarge, DuplicateKeyError, WriteError

from service.mongo.client import DUPLICATE, Collection, Row, Session

UNSTORABLE = (DocumentTooLarge, InvalidDocument, WriteError)
"""A document is refused, by the driver or by the server."""


async def insert_each(
    collection: Collection, rows: Sequence[Row], session: Session | None = None
) -> dict[Any, Exception]:
    """Insert rows; return the error that a single insert would have raised for each that failed, by id. In a
    transaction the first one is raised."""
    try:
        if rows:
            await collection.insert_many(rows, ordered=False, session=session)
    except BulkWriteError as error:
        if error.details["writeConcernErrors"] or error.has_error_label("TransientTransactionError"):
            raise
        failed = {one["op"]["_id"]: _single(one) for one in error.details["writeErrors"]}
        if session:
            raise next(iter(failed.values())) from None
        return dict(failed)
    except UNSTORABLE:
        if session:
            raise
        return await _insert_one_by_one(collection, rows)
    return {}


def _single(said: Row) -> WriteError:
    kind = DuplicateKeyError if said["code"] == DUPLICATE else WriteError
    return kind(said["errmsg"], said["code"], said)


async def _insert_one_by_one(collection: Collection, rows: Sequence[Row]) -> dict[Any, Exception]:
    """The driver refuses a document: the others must not fail with it."""
    failed: dict[Any, Exception] = {}
    for row in rows:
        try:
            await collection.insert_one(row)
        except UNSTORABLE as error:
            if not violates(error, "_id"):  # otherwise it was inserted with the others
                failed[row["_id"]] = error
    return failed


def violates(error: Exception, field: str) -> bool:
    """Whether a value of this field, which has a unique index, is taken."""
    return isinstance(error, DuplicateKeyError) and field in (error.details or {}).get("keyPattern", ())


async def insert_missing(collection: Collection, rows: Sequence[Row]) -> list[Any]:
    """Insert the rows whose unique values are not taken; return the ids of the others."""
    failed = await insert_each(collection, rows)
    for error in failed.values():
        if not isinstance(error, DuplicateKeyError):
            raise error
    return list(failed)
