"""`kalends doctor`: checks every invariant of the database on demand, and repairs what is wrong."""

from __future__ import annotations

import sys

import pymongo
from pymongo.errors import PyMongoError

from config import Settings
from schemas import KINDS
from schemas.errors import Unavailable
from service.changes.feed import CHECKPOINT
from service.changes.restores import RestoreUnderWay, refuse_restore
from service.database import Location, located
from service.doctor.checks import STAGES
from service.doctor.runner import Examination, Outcome
from service.doctor.scope import Scope
from service.embedded import choose_directory, has_data
from service.failures import brief
from service.migrations import FORM, DatabaseTooNew, stored_form
from service.progress import Progress
from service.site import site_of
from service.store import Store, unstarted_store

REACH_SECONDS = 5
NOTHING_LEFT, LEFT, CANNOT_CHECK = 0, 1, 2
"""Exit statuses."""


async def check_database(settings: Settings, *, repairs: bool) -> int:
    """Check the database, print findings and a summary, and return the exit status."""
    if not settings.mongodb_uri and not has_data(directory := choose_directory(settings.data_dir).path):
        return refuse(f"there is no database in {directory}")
    async with (
        located(settings) as location,
        unstarted_store(location.uri, location.database, site_of(settings)) as store,
    ):
        try:
            return await check_store(store, location, repairs=repairs)
        except PyMongoError as error:
            return refuse(f"{location} cannot be reached: {brief(error)}")
        except (DatabaseTooNew, RestoreUnderWay, Unavailable) as error:
            return refuse(str(error))


async def check_store(store: Store, location: Location, *, repairs: bool) -> int:
    """Check an open store. MongoDB may be lost and a restore may begin at any time, which is raised."""
    with pymongo.timeout(REACH_SECONDS):
        reason = await unusable(store)
    if reason:
        return refuse(f"{location} {reason}")
    print(f"{'Repairing' if repairs else 'Checking'} {location}", file=sys.stderr)
    outcome = await examine(store, repairs=repairs)
    print(summary(outcome, repairs=repairs), file=sys.stderr)
    return LEFT if outcome.found > outcome.repaired else NOTHING_LEFT


def refuse(reason: str) -> int:
    print(f"kalends: {reason}", file=sys.stderr)
    return CANNOT_CHECK


async def unusable(store: Store) -> str:
    """Why the database cannot be checked; empty if it can."""
    if not await store.database.list_collection_names():
        return "is empty: there is nothing to check"
    await refuse_restore(store.database)
    form = await store.database["meta"].find_one({"_id": "form"})
    is_numbered = form is not None and isinstance(form.get("number"), int)
    if is_numbered and await stored_form(store.database) < FORM:
        return f"has an older stored form than {FORM}: run `kalends migrate` first"
    # Only databases of the first version have no number, nor a checkpoint.
    has_checkpoint = await store.database["meta"].find_one({"_id": CHECKPOINT}) is not None
    if form is None and not has_checkpoint and not await store.database["meta"].find_one({"_id": "instance"}):
        return "has no stored form: run `kalends migrate` first"
    return ""


async def examine(store: Store, *, repairs: bool) -> Outcome:
    kinds = [kind for kind, _ in STAGES if kind]
    sizes = {kind.plural: await store.database[kind.plural].estimated_document_count() for kind in KINDS}
    progress = Progress(sys.stderr, sum(sizes[kind.plural] for kind in kinds))

    def report(line: str) -> None:
        progress.clear()
        print(line, flush=True)

    examination = Examination(
        Scope(store), repairs=repairs, report=report, show=lambda done: progress.show(done, done)
    )
    await examination.run(STAGES)
    progress.clear()
    return examination.outcome


def summary(outcome: Outcome, *, repairs: bool) -> str:
    left = outcome.found - outcome.repaired
    if not outcome.found:
        return "Nothing is wrong"
    findings = f"{outcome.found} finding{'s' * (outcome.found != 1)}"
    if repairs:
        return f"{findings}: {outcome.repaired} repaired, {left} left"
    return f"{findings}; `kalends doctor --repair` repairs what can be repaired"
