"""Counting what is noted, all of it at once.

What is to be done is written down as a plan first. There is one at a time, and whoever finds one carries it
out. Each of its steps changes a record that is as the plan says, and is not so afterwards: so each is taken
once, by however many processes, and whichever of them die.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta
from typing import Any

from pymongo import UpdateOne

from schemas.event import EVENT
from schemas.event_view import LINKED
from service.store.batches import Batch
from service.store.client import Database
from service.store.copies import Copies
from service.store.debts import SOON, Debt, Debts, Note, Plan, Truth, Use
from service.store.lookups import Lookup
from service.store.usage import Step, has_end, was_cut
from service.store.visibility import UNLOCKED

MANY = 500
"""Debts that are not left to the next sweep."""
UNWRITTEN = timedelta(hours=1)
"""A note whose event is not there is kept this long: the write may still be on its way."""
PUBLIC = {"status": "publish", **UNLOCKED}
LIVE = {"status": {"$ne": "trash"}}
EVENTS = {"version": 1, "debt": 1} | {f"{name}.{part}": 1 for name in LINKED for part in ("_id", "version")}
Rows = Mapping[Any, dict[str, Any]]


class Counts:
    """The counters of all records, brought up to what was written."""

    def __init__(self, database: Database, copies: Copies) -> None:
        self._database = database
        self._copies = copies
        self.debts = Debts(database)
        self._records = Lookup(database, {"version": 1, "events.rev": 1})
        self._batch = Batch[None, None](self._count)

    @property
    def are_far_behind(self) -> bool:
        return self.debts.unseen >= MANY

    async def catch_up(self) -> None:
        """Returns when everything that was acknowledged before the call is counted."""
        await self._batch.ask(None)

    async def sweep(self, now: datetime) -> None:
        await self.catch_up()
        await self.debts.drop(now - UNWRITTEN)

    async def _count(self, _: Sequence[None]) -> dict[None, None]:
        while True:
            number, left, notes = await self.debts.state()
            if left:
                await self._carry_out(number, left)
            elif not (plan := await self._planned(notes)):
                return {}
            elif await self.debts.is_begun(number + 1, plan):
                await self._carry_out(number + 1, plan)
                return {}

    async def _carry_out(self, number: int, plan: Plan) -> None:
        updates: defaultdict[str, list[UpdateOne]] = defaultdict(list)
        for field, id, rev, *step in plan["steps"]:
            updates[field].append(UpdateOne({"_id": id, "events.rev": rev}, Step(*step).change()))
        await asyncio.gather(
            *(self._collection(field).bulk_write(many, ordered=False) for field, many in updates.items())
        )
        await self.debts.take(plan["notes"], plan["marks"])
        await self.debts.end(number)

    def _collection(self, field: str) -> Any:
        return self._database[LINKED[field].plural].with_options(write_concern=SOON)

    async def _planned(self, noted: Sequence[Note]) -> Plan | None:
        """What is to be done about all that is noted; None where there is nothing to do."""
        notes, events = await self._understood(noted)
        debts = [debt for note in notes for debt in note.debts]
        truth = Truth(debts, events)
        settled = [debt.mark for debt in debts if debt.mark not in truth.open]
        if not settled:
            return None
        records = await self._linked({use for debt in truth.made for use in debt.changes})
        await self._renew(truth.made, events, records)
        steps = await self._steps(truth.made, events)
        whole = [note for note in notes if not any(debt.mark in truth.open for debt in note.debts)]
        gone = {debt.mark for note in whole for debt in note.debts}
        return {
            "steps": [
                [*use, records[use]["events"]["rev"], *astuple(step)]
                for use, step in steps.items()
                if use in records
            ],
            "notes": [note.id for note in whole],
            "marks": [mark for mark in settled if mark not in gone],
        }

    async def _understood(self, notes: Sequence[Note]) -> tuple[Sequence[Note], Rows]:
        """Notes, and the events that they are about: all that these bear the marks of is noted or counted."""
        marks = {debt.mark: debt.event for note in notes for debt in note.debts}
        events = await self._events(set(marks.values())) if marks else {}
        strange = {event.get("debt") for event in events.values()} - marks.keys()
        _, _, later = await self.debts.state() if strange else (0, None, ())
        if any(debt.mark in strange for note in later for debt in note.debts):
            return await self._understood(later)  # what was written since is noted since
        return notes, events

    async def _linked(self, uses: Collection[Use]) -> Rows:
        """What the counters are beside, as far as it is still there."""
        asked = {(field, id): (LINKED[field].plural, id) for field, id in uses}
        found = await self._records.many(asked.values())
        return {use: found[one] for use, one in asked.items() if one in found}

    async def _events(self, ids: Iterable[int]) -> Rows:
        rows = await self._database[EVENT.plural].find({"_id": {"$in": list(ids)}}, EVENTS).to_list(None)
        return {row["_id"]: row for row in rows}

    async def _renew(self, debts: Iterable[Debt], events: Rows, records: Rows) -> None:
        """A record may have changed while an event was linked to it, and its writer have died."""
        stale = {
            (field, id)
            for debt in debts
            for field, id in debt.changes
            for copy in events[debt.event].get(field, ())
            if copy["_id"] == id and copy["version"] != records.get((field, id), {}).get("version")
        }
        for field, id in stale:
            await self._copies.renew(LINKED[field], id)

    async def _steps(self, debts: Iterable[Debt], events: Rows) -> dict[Use, Step]:
        steps: defaultdict[Use, Step] = defaultdict(Step)
        unsure: set[Use] = set()
        for debt in debts:
            is_last = events[debt.event]["version"] == debt.version
            for use, (was, now) in debt.changes.items():
                steps[use].add(was, now, ends=has_end(use))
                if has_end(use) and (not is_last or was_cut(was, now)):
                    unsure.add(use)
        for use in unsure:
            steps[use].found = await self._last_ends(*use)
        return steps

    async def _last_ends(self, field: str, id: int) -> list[datetime | None]:
        """When the last of the public and of all events ends that link to a record."""
        events = self._database[EVENT.plural]
        asked = [{f"{field}._id": id, **state} for state in (PUBLIC, LIVE)]
        last = [await events.find_one(one, {"end_utc": 1}, sort=[("end_utc", -1)]) for one in asked]
        return [event["end_utc"] if event else None for event in last]
