"""Batches: each is one transaction of the records, what they make, a note of what is to be counted, and a
mark for every line. So a batch is there or it is not, whenever its process dies, and no line is stored twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from pymongo.errors import BulkWriteError, OperationFailure, PyMongoError

from schemas.errors import InvalidFields
from schemas.event import EVENT
from schemas.event_view import LINKED
from schemas.kind import Document, Kind
from service.store import tree
from service.store.client import DUPLICATE, Database
from service.store.copies import copy_of
from service.store.debts import Debt, Debts
from service.store.lookups import PRIVATE
from service.store.usage import changed_uses

log = logging.getLogger("kalends.store")
PATIENCE = 50
"""Seconds that a batch may take; MongoDB gives up a transaction after sixty."""
INTERRUPTED = 11601


class Conflict(Exception):
    """Somebody else has written what a batch was made from."""


class Unstorable(Conflict):
    """The database refuses something in a batch, and would again."""


async def store_together(
    session: Any,
    database: Database,
    debts: Debts,
    kind: Kind,
    records: Sequence[Document],
    beside: Iterable[tuple[str, list[Document]]],
) -> None:
    """Stores new records, what goes beside them (collection, documents), and what follows from them."""
    others = list(beside)

    async def work(session: Any) -> None:
        for name, documents in others:
            await database[name].insert_many(documents, session=session)
        if kind is EVENT:
            for name in LINKED:
                await _renew_copies(database, name, records, session)
            owed = [Debt(record["_id"], 1, changed_uses(None, record)) for record in records]
            for record, debt in zip(records, owed, strict=True):
                record["debt"] = debt.mark
            await debts.note_within(session, owed)
        for record in (record for record in records if record.get("parent")):
            await tree.hang(database, kind, record, session)
        await database[kind.plural].insert_many(records, session=session)

    await tree.ensure_lock(database)
    try:
        await session.with_transaction(work)
    except InvalidFields:  # the category above is gone
        raise Conflict from None
    except PyMongoError as error:
        if _is_passing(error):
            raise Conflict from error
        if not isinstance(error, BulkWriteError):
            raise
        log.warning("not stored: %s", error)
        raise Unstorable from error


async def _renew_copies(database: Database, name: str, events: Iterable[Document], session: Any) -> None:
    """Brings copies up to what the transaction sees: they may be of an earlier batch."""
    kind = LINKED[name]
    ids = list({copy["_id"] for event in events for copy in event[name]})
    if not ids:
        return
    rows = database[kind.plural].find({"_id": {"$in": ids}}, PRIVATE, session=session)
    now = {row["_id"]: row async for row in rows}
    if len(now) < len(ids):  # one was deleted
        raise Conflict
    for event in events:
        event[name] = [
            copy if copy["version"] == now[copy["_id"]]["version"] else copy_of(kind, now[copy["_id"]])
            for copy in event[name]
        ]


def _is_passing(error: PyMongoError) -> bool:
    """Whether the batch may be tried again. If it was stored after all, its marks will tell."""
    labels = ("TransientTransactionError", "UnknownTransactionCommitResult")
    if error.timeout or any(error.has_error_label(label) for label in labels):
        return True
    details = (isinstance(error, OperationFailure) and error.details) or {}
    codes = {details.get("code"), *(one["code"] for one in details.get("writeErrors", ()))}
    return bool(codes & {DUPLICATE, INTERRUPTED})
