"""Finds the events that a page shows, with the filters of its address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

import orjson

from handlers.pages.calendar.event_times import ShownEvent
from handlers.pages.calendar.periods import Period
from handlers.pages.context import PageContext
from handlers.records import Caches
from handlers.requests import values_of
from handlers.store_protocol import Store
from handlers.time_slices import let_others_run
from schemas.errors import Problems
from schemas.kind import Document, Kind, load_valid
from schemas.kinds.event import EVENT
from schemas.site import Site

LONGEST = timedelta(days=366)
"""Events that began earlier are not found: without a bound, all past ones would have to be looked at."""
MAX_IN_GRID = 500
"""Events of the weeks of a page that are read; if there are more, only their numbers are shown."""
DAY = timedelta(days=1)


class Found(NamedTuple):
    """The events of a page, and the number of all that match."""

    events: list[ShownEvent]
    total: int


class EventFinder:
    """Finds events; the caches are those of the API."""

    def __init__(self, store: Store, site: Site, caches: Caches) -> None:
        self._store, self._site, self._fragments = store, site, caches.fragments

    async def of_period(self, page: PageContext, period: Period) -> Found:
        """The events of a period, as their own time zones have it: days of other zones begin up to 26 hours
        earlier or later. If there are too many, only their number."""
        dates = around(period.first, period.last)
        if (total := (await self.find(page, dates, {"per_page": 1})).total) > MAX_IN_GRID:
            return Found([], total)
        found = await self.find(page, dates, {"per_page": MAX_IN_GRID})
        here = [event for event in found.events if event.is_within(period.first, period.last)]
        return Found(here, found.total)

    async def numbers(self, page: PageContext, period: Period) -> dict[date, int]:
        """The number of events that begin on each day of a period, as the time zone of the site has it: they
        are counted by the histograms of the store, however many there are."""
        days = [period.first + at * DAY for at in range((period.last - period.first).days + 1)]
        queries = [{"starts_after": day - DAY, "starts_before": day} for day in days]
        found = await asyncio.gather(*(self.find(page, dates, {"per_page": 1}) for dates in queries))
        return {day: one.total for day, one in zip(days, found, strict=True)}

    async def from_day(
        self, page: PageContext, day: date, number: int, per_page: int, last: date | None = None
    ) -> Found:
        """A page of the events that have not ended before a day, and begin on the last day or before."""
        dates = {"starts_after": day - LONGEST, "ends_after": day - DAY}
        if last:
            dates["starts_before"] = last
        return await self.find(page, dates, {"page": number, "per_page": per_page})

    async def before_day(self, page: PageContext, day: date, number: int, per_page: int) -> Found:
        """A page of the events that have ended before a day, the last ones first."""
        dates = {"ends_before": day - DAY}
        return await self.find(page, dates, {"page": number, "per_page": per_page, "order": "desc"})

    async def find(self, page: PageContext, dates: Mapping[str, date], query: Document) -> Found:
        sent = {"status": "publish"} | values_of(page.filters, EVENT.query_schema)
        sent |= {name: str(day) for name, day in dates.items()}
        await let_others_run()
        asked, problems = load_valid(EVENT.query_schema, sent, self._site)
        records, total = await self.records(EVENT, page, asked | {"page": 1} | query, problems)
        now = self._site.now()
        return Found([ShownEvent(record, now) for record in records], total)

    async def records(
        self, kind: Kind, page: PageContext, query: Document, problems: Problems | None = None
    ) -> tuple[list[Document], int]:
        """A page of a list of any kind, as the API represents it; raises what is wrong with the query and
        the problems that are known already."""
        found = await self._store.page(kind, query, page.caller, problems or Problems())
        fragments = await self._fragments.render_list(kind, found.heads, page.records)
        return [orjson.loads(fragment.body) for fragment in fragments], found.total


def around(first: date, last: date) -> dict[str, date]:
    """Dates of the site within which all events of some days are that have these days in their own zones."""
    return {"starts_after": first - LONGEST, "starts_before": last + 2 * DAY, "ends_after": first - 3 * DAY}
