"""Upgrades the stored form of a database, one number at a time.

Every database has a form number. A service upgrades an older form before it starts; a database with a newer
form than it knows is refused. Several processes may start at once: one holds the lease and upgrades, the
others wait. Each step can be repeated: a process that dies leaves nothing behind but an expired lease.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import pymongo

from schemas import KINDS
from service.migrations import form_2
from service.migrations.form_2 import Report
from service.migrations.id_counters import raise_id_counters
from service.migrations.lease import hold_lease
from service.migrations.recount import recount_if_needed
from service.mongo.client import Database
from service.mongo.indexes import create_indexes
from service.mongo.instance import create_instance

log = logging.getLogger("kalends.migrations")
FORM = 2
"""The stored form that this version reads and writes. Version 0.1.0 had form 1, without a number."""
STEPS: dict[int, Callable[[Database, Report], Awaitable[None]]] = {2: form_2.upgrade}
"""The step to each form from the one before."""
STEP_SECONDS = 6 * 3600
"""Time limit of a step."""


class DatabaseTooNew(Exception):
    """The database was made by a newer version of Kalends."""

    def __init__(self, form: int) -> None:
        super().__init__(
            f"the database has the stored form {form}, made by a newer version of Kalends; this version "
            f"supports form {FORM}: upgrade Kalends, or use another database"
        )


def log_progress(step: str, done: int, total: int) -> None:
    log.info("preparing the database: %s, %d of %d", step, done, total)


class FormUnknown(Exception):
    """The number of the stored form is damaged."""

    def __init__(self) -> None:
        super().__init__("the number of the stored form is damaged: run `kalends doctor --repair`")


async def stored_form(database: Database) -> int:
    """The form number of a database, 0 if it is empty. Raises DatabaseTooNew, and FormUnknown."""
    if found := await database["meta"].find_one({"_id": "form"}):
        if not isinstance(number := found.get("number"), int):
            raise FormUnknown
        if number > FORM:
            raise DatabaseTooNew(number)
        return number
    for kind in KINDS:
        if await database[kind.plural].find_one({}, {"_id": 1}):
            return 1
    return 0


async def prepare(database: Database, report: Report) -> None:
    """Bring a database to the form that this version needs; it may be new, older or restored."""
    await migrate(database, report)
    await create_indexes(database)
    await recount_if_needed(database, report)
    await raise_id_counters(database)
    await create_instance(database)


async def migrate(database: Database, report: Report) -> None:
    """Upgrade the database to the current form."""
    if await stored_form(database) == FORM:
        return
    async with hold_lease(database, "migration"):
        while form := await stored_form(database):
            if form == FORM:
                return
            with pymongo.timeout(STEP_SECONDS):
                await STEPS[form + 1](database, report)
            await _set_form(database, form + 1)
        await _set_form(database, FORM)


async def _set_form(database: Database, number: int) -> None:
    await database["meta"].update_one({"_id": "form"}, {"$max": {"number": number}}, upsert=True)
