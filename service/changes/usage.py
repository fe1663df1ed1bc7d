"""Usage counters in venues, organizers and terms: the number of events that link to each, and the latest end.

Writers of events do not touch them. The change feed shows each write with its links before and after, and
`changes/log.py` has these changes added to the counters. Every record stores the time up to which changes are
counted in it, and an update requires the time that was read before. So each change is counted once, whichever
processes try, and whichever die.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from bson import Timestamp
from pymongo import UpdateOne

from schemas.errors import Unavailable
from schemas.kind import Document
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import LINKED
from service.changes.change import Change
from service.changes.feed import ChangeFeed
from service.changes.link_states import Link, Transition, after_transitions
from service.changes.list_fields import ListFields
from service.mongo.client import Database, collections
from service.mongo.loaders import RecordLoader

MAX_ATTEMPTS = 100
PUBLIC = {"status": "publish", "locked": {"$ne": True}}
LIVE = {"status": {"$ne": "trash"}}
Records = Mapping[Link, Document]
CompareCopies = Callable[[Sequence[ListFields]], Awaitable[object]]
"""Updates the copies in events that are older than the records which they are of."""


async def load_linked(loader: RecordLoader, links: Iterable[Link]) -> dict[Link, Document]:
    """The linked records that exist."""
    refs = {(field, id): (LINKED[field].plural, id) for field, id in links}
    found = await loader.load_many(refs.values())
    return {link: found[ref] for link, ref in refs.items() if ref in found}


class UsageCounters:
    """Counts the events of linked records."""

    def __init__(self, database: Database, feed: ChangeFeed, compare_copies: CompareCopies) -> None:
        self._feed, self._compare_copies, self._collection = feed, compare_copies, collections(database)
        self._records = RecordLoader(database, {"version": 1, "events": 1})

    async def count(self, changes: Collection[Change], until: Timestamp) -> None:
        """Count changes up to a time: all of them since the last checkpoint."""
        transitions = [(change.at, change.transitions) for change in changes]
        links = {link for _, its in transitions for link in its}
        for _ in range(MAX_ATTEMPTS):
            # Confirmed: a record that a new primary does not have yet would never be counted.
            records = await self._feed.confirm(partial(load_linked, self._records, links))
            if await self._update(records, transitions, until):
                break
        else:
            raise Unavailable
        # An event may embed a record that was changed meanwhile, and its writer may have died.
        await self._compare_copies([change.new for change in changes if change.new and change.transitions])

    async def _update(
        self,
        records: Records,
        transitions: Iterable[tuple[Timestamp, Mapping[Link, Transition]]],
        until: Timestamp,
    ) -> bool:
        """Update the counters; return whether all of them were as they had been read."""
        uncounted: defaultdict[Link, list[Transition]] = defaultdict(list)
        for at, its in transitions:
            for link in its.keys() & records.keys():
                counters = records[link].get("events")  # missing if another program has written the record
                if counters and at > (counters["as_of"] or Timestamp(0, 1)):
                    uncounted[link].append(its[link])
        updates: defaultdict[str, list[UpdateOne]] = defaultdict(list)
        for (field, id), those in uncounted.items():
            counters = records[field, id]["events"]
            changed = {"events": await self._counted(field, id, counters, those) | {"as_of": until}}
            query = {"_id": id, "events.as_of": counters["as_of"]}
            updates[LINKED[field].plural].append(UpdateOne(query, {"$set": changed}))
        done = [
            await self._collection(plural).bulk_write(many, ordered=False) for plural, many in updates.items()
        ]
        return sum(one.matched_count for one in done) == len(uncounted)

    async def _counted(
        self, field: str, id: int, counters: Mapping[str, Any], transitions: Iterable[Transition]
    ) -> dict[str, Any]:
        counted, are_ends_known = after_transitions(counters, transitions)
        if not LINKED[field].is_post:  # terms are not filtered by the ends of their events
            return counted | {"publish_end": None, "live_end": None}
        if not are_ends_known:
            for name, state in (("publish_end", PUBLIC), ("live_end", LIVE)):
                counted[name] = await self._feed.confirm(partial(self._last_end, field, id, state))
        return counted

    async def _last_end(self, field: str, id: int, state: Document) -> datetime | None:
        last = await self._collection(EVENT.plural).find_one(
            {f"{field}._id": id, **state},
            {"_id": 0, "end_utc": 1},  # so that MongoDB reads the index only
            sort=[("end_utc", -1)],
            hint=f"linked_{field}",
        )
        return last["end_utc"] if last else None
