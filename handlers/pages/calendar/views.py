"""The calendar: month, week, day and lists, with the filters of the API."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

from aiohttp import web

from handlers.pages.calendar.event_times import ShownEvent
from handlers.pages.calendar.events import MAX_IN_GRID, EventFinder
from handlers.pages.calendar.grid import MAX_ROWS, weeks_of
from handlers.pages.calendar.periods import (
    VIEWS,
    Period,
    parse_day,
    path_of,
    period_of,
    shared_day,
    whole_weeks,
)
from handlers.pages.context import PageContext, page_context
from handlers.pages.filters import category_options, chips
from handlers.pages.rendering import html_response
from handlers.pages.venue_map import map_values
from handlers.records import Caches
from handlers.responses.prepared import PreparedResponse
from handlers.store_protocol import Store
from handlers.time_slices import let_others_run
from schemas import CATEGORY
from schemas.errors import InvalidFields, PageNotFound
from schemas.kind import Document, load
from schemas.language import Text
from schemas.site import Site

PER_PAGE = 20
MAX_CATEGORIES = 200
"""Categories that the filter offers."""


class CalendarPages:
    """The handlers of all views."""

    def __init__(self, store: Store, site: Site, caches: Caches) -> None:
        self.store, self.site, self.pages = store, site, caches.pages
        self.finder = EventFinder(store, site, caches)

    async def home(self, request: web.Request) -> web.StreamResponse:
        return await self._respond(request, "month", None)

    async def view(self, request: web.Request) -> web.StreamResponse:
        sent = request.match_info.get("day")
        return await self._respond(request, request.match_info["view"], parse_day(sent) if sent else None)

    async def embed(self, request: web.Request) -> web.StreamResponse:
        """A view without the rest of the page, for a frame in a page of another site."""
        sent = request.query.get("date")
        day = parse_day(sent) if sent else None
        return await self._respond(request, request.match_info["view"], day, is_embedded=True)

    async def _respond(
        self, request: web.Request, view: str, day: date | None, *, is_embedded: bool = False
    ) -> web.StreamResponse:
        page = page_context(request, self.site)
        if page.path != "/" and not is_embedded:
            page = replace(page, path=path_of(view, shared_day(view, day, page.local.first_weekday)))

        async def make() -> tuple[PreparedResponse, datetime]:
            shown = CalendarView(page, view, day, self.today(), is_embedded)
            values = await self._content(page, shown)
            values |= {"view": shown, "chips": await chips(page, self.store)}
            values["categories"] = category_options(page, await self._categories(page))
            await let_others_run()
            response = html_response("calendar.html", page, is_embedded=is_embedded, **values)
            return response, self.expires_at(values["events"])

        return (await self.pages.response(("calendar", day, page.key), make)).respond_to(request)

    async def _content(self, page: PageContext, shown: CalendarView) -> Document:
        if shown.name == "map":
            return await map_values(self.finder, page, shown.period.first)
        if shown.name in ("list", "past"):
            return await self._list(page, shown)
        return await (self._day if shown.name == "day" else self._grid)(page, shown)

    async def _day(self, page: PageContext, shown: CalendarView) -> Document:
        found = await self.finder.of_period(page, shown.period)
        if found.total > MAX_IN_GRID:
            return await self._list(page, shown)
        return {"events": found.events, "total": len(found.events)}

    async def _grid(self, page: PageContext, shown: CalendarView) -> Document:
        """Whole weeks; the total is that of the period, without the days of other months."""
        period, first_weekday = shown.period, page.local.first_weekday
        drawn = whole_weeks(period, first_weekday)
        found = await self.finder.of_period(page, drawn)
        if found.total > MAX_IN_GRID:
            numbers = await self.finder.numbers(page, drawn)
            total = sum(number for day, number in numbers.items() if period.first <= day <= period.last)
            weeks = weeks_of(period, [], first_weekday, numbers=numbers)
            return {"events": [], "total": total, "weeks": weeks}
        most = MAX_ROWS if shown.name == "month" else MAX_IN_GRID
        total = sum(event.is_within(period.first, period.last) for event in found.events)
        weeks = weeks_of(period, found.events, first_weekday, max_rows=most)
        return {"events": found.events, "total": total, "weeks": weeks}

    async def _list(self, page: PageContext, shown: CalendarView) -> Document:
        number = page_number(page)
        day = shown.period.first
        if shown.name == "past":
            found = await self.finder.before_day(page, day, number, PER_PAGE)
        else:
            last = day if shown.name == "day" else None
            found = await self.finder.from_day(page, day, number, PER_PAGE, last)
        if number > (pages := max(1, math.ceil(found.total / PER_PAGE))):
            raise PageNotFound(kind="event")
        return {"events": found.events, "total": found.total, "number": number, "pages": pages}

    async def _categories(self, page: PageContext) -> list[Document]:
        query = load(CATEGORY.query_schema, {}, self.site) | {"per_page": MAX_CATEGORIES}
        return (await self.finder.records(CATEGORY, page, query))[0]

    def today(self) -> date:
        return self.site.zone.to_wall(self.site.now()).date()

    def expires_at(self, events: Iterable[ShownEvent]) -> datetime:
        """When a page with these events expires if nothing changes: as soon as one of them is over."""
        return min([self.midnight(), *(event.ends for event in events if not event.is_past)])

    def midnight(self) -> datetime:
        return self.site.zone.to_utc(datetime.combine(self.today() + timedelta(days=1), time()))


@dataclass(frozen=True)
class CalendarView:
    """A view of the calendar, and its links to others."""

    page: PageContext
    name: str
    day: date | None
    today: date
    is_embedded: bool

    @property
    def period(self) -> Period:
        return period_of(self.name, self.day or self.today, self.page.local.first_weekday)

    @property
    def title(self) -> str:
        local, period = self.page.local, self.period
        titles: dict[str, Any] = {
            "month": local.month(period.first),
            "week": local.days(period.first, period.last),
            "day": local.day(period.first),
            "past": self.page.text(VIEWS["past"]),
        }
        return str(titles.get(self.name) or self.page.text(Text("Upcoming events")))

    @property
    def views(self) -> list[tuple[str, str, str]]:
        """(name, label, link) of each view, at the same day."""
        names = ("month", "week", "day", "list", "map")
        return [(name, self.page.text(VIEWS[name]), self.link(name, self.day)) for name in names]

    def link(self, name: str, day: date | None, **changes: object) -> str:
        if self.is_embedded:
            return self.page.link(f"/embed/{name}", date=day, **changes)
        return self.page.link(path_of(name, day), **changes)

    def is_today(self, day: date) -> bool:
        return day == self.today

    @property
    def first_shown(self) -> date:
        """The first day that narrow screens show: today in the current month or week."""
        period = self.period
        return self.today if period.first <= self.today <= period.last else period.first

    def is_over(self, day: date) -> bool:
        """Whether a day has passed, in the current month or week."""
        return self.period.first <= day < self.first_shown


def page_number(page: PageContext) -> int:
    sent = page.value("page") or "1"
    if not (sent.isascii() and sent.isdigit() and 1 <= len(sent) <= 9 and int(sent)):
        raise InvalidFields({"page": Text("Must be a whole number of at least {least}.", least=1)})
    return int(sent)
