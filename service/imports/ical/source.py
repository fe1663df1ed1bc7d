"""Reads iCalendar files: single events, and the occurrences of series within a window of time."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple, cast

from icalendar import Event

from schemas import EVENT
from schemas.site import Site
from schemas.values.zones import Zone
from service.imports.ical.components import CALENDAR_ZONE, Component, components
from service.imports.ical.refusing import BROKEN, refusal, refuse_broken, refuse_invalid
from service.imports.ical.repairs import repaired
from service.imports.ical.series import moment, occurrence_key, occurrences
from service.imports.ical.values import values_of
from service.imports.ical.zones import define_zone, known_zone
from service.imports.item import Entry, Item, Refusal, Series

DAY = timedelta(days=1)


class Part(NamedTuple):
    """An event, or a part of a series: its rule, or a changed occurrence."""

    line: int
    event: Event

    @property
    def is_in_series(self) -> bool:
        return any(name in self.event for name in ("RRULE", "RDATE", "RECURRENCE-ID"))

    @property
    def revision(self) -> int:
        sequence = self.event.get("SEQUENCE", 0)
        return sequence if isinstance(sequence, int) else 0


class CalendarSource:
    """The events of an iCalendar file, grouped by UID."""

    notices = ()
    position = 0

    def __init__(self, name: str, text: str, site: Site, since: date, until: date) -> None:
        self.name, self._since, self._until = name, since, until
        self._zone: Zone = site.zone
        self._refused: list[Refusal] = []
        self._by_uid: dict[str, list[Part]] = {}
        self._parse(list(components(text, name)))
        self.size = len(self._by_uid)

    def _parse(self, found: Sequence[Component]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the names of time zones
            for one in found:
                if one.name == "VTIMEZONE":
                    with suppress(*BROKEN):  # events that refer to an invalid zone are refused
                        define_zone(one.text)
                elif one.name == CALENDAR_ZONE:
                    self._zone = known_zone(one.text, self._zone)
            for one in found:
                if one.name == "VEVENT":
                    self._add(one)

    def _add(self, component: Component) -> None:
        try:
            refuse_broken(component)
            event = cast(Event, Event.from_ical(repaired(component.text)))
            refuse_invalid(event)
            start = moment(event, "DTSTART")
            uid = str(event.get("UID", "")).strip() or f"{event.get('SUMMARY')} {start}"
        except BROKEN as error:
            self._refused.append(refusal(component.line, error))
        else:
            self._by_uid.setdefault(uid, []).append(Part(component.line, event))

    async def items(self) -> AsyncIterator[Entry]:
        for refused in self._refused:
            yield refused
        for uid, parts in self._by_uid.items():
            self.position += 1
            for entry in self._entries(uid, parts):
                yield entry

    def _entries(self, uid: str, parts: Sequence[Part]) -> list[Entry]:
        """The items of an event or a series, and what is left of it, or why it cannot be imported."""
        try:
            is_series = any(part.is_in_series for part in parts)
            items = self._series(uid, parts) if is_series else self._singles(uid, parts)
            return [*items, self._what_is_left(uid, parts, [item.key for item in items])]
        except BROKEN as error:
            return [refusal(parts[0].line, error)]

    def _singles(self, uid: str, parts: Sequence[Part]) -> list[Item]:
        """The latest revision. Some programs give events that start at different times the same UID."""
        revision, latest = max(part.revision for part in parts), dict[date, Part]()
        for part in parts:
            if part.revision == revision:
                latest.setdefault(moment(part.event, "DTSTART"), part)
        keys = [occurrence_key(f"{uid} {at}" if number else uid, None) for number, at in enumerate(latest)]
        return [
            self._item(part.event, part.line, key) for key, part in zip(keys, latest.values(), strict=True)
        ]

    def _series(self, uid: str, parts: Sequence[Part]) -> list[Item]:
        lines = {occurrence_key(uid, at): part.line for part in parts if (at := recurrence_id(part.event))}
        items: dict[bytes, Item] = {}
        for event in occurrences([part.event for part in parts], self._since, self._until):
            key = occurrence_key(uid, moment(event, "RECURRENCE-ID"))
            if key in items:  # a change of all later ones gives them its own RECURRENCE-ID
                key = occurrence_key(uid, moment(event, "DTSTART"))
            items[key] = self._item(event, lines.get(key, parts[0].line), key)
        return list(items.values())

    def _item(self, event: Event, line: int, key: bytes) -> Item:
        is_cancelled = str(event.get("STATUS", "")).upper() == "CANCELLED"
        return Item(EVENT, key, f"line {line}", None if is_cancelled else values_of(event, self._zone))

    def _what_is_left(self, uid: str, parts: Sequence[Part], keys: Sequence[bytes]) -> Series:
        """Occurrences in the window, or the single event that a series was before, that are gone."""
        moved = [occurrence_key(uid, at) for part in parts if (at := recurrence_id(part.event))]
        single = occurrence_key(uid, None)
        # Days begin at different times in different zones.
        window = occurrence_key(uid, self._since + DAY), occurrence_key(uid, self._until - DAY)
        return Series(EVENT, f"line {parts[0].line}", ((single, single), window), frozenset((*keys, *moved)))


def recurrence_id(event: Event) -> date | None:
    return moment(event, "RECURRENCE-ID") if "RECURRENCE-ID" in event else None
