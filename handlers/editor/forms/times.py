"""Says which instant a typed time stands for, and warns where the clocks are changed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from handlers.editor.forms import Form
from handlers.editor.forms.fields import FormField
from handlers.pages.context import PageContext
from schemas.kinds.event_times import TIME_FIELDS
from schemas.language import Text, translate
from schemas.values.zones import Zone, parse_zone

SKIPPED = Text("{time} does not exist on this day: the clocks are set forward. {meant} ({zone}) is used.")
TWICE = Text(
    "{time} occurs twice on this day: the clocks are set back. The one in {zone} ({offset}) is used."
)


def zone_of(form: Form, field: FormField, page: PageContext) -> Zone:
    """The zone that a time is typed in: that of the record if it has one, otherwise that of the site."""
    if field.schema_field.metadata.get("zone") == "site":
        return page.site.zone
    return read_zone(form.text("timezone"), page)


def read_zone(name: str, page: PageContext) -> Zone:
    try:
        return parse_zone(name) if name else page.site.zone
    except ValueError:
        return page.site.zone


def read_wall(typed: str) -> datetime | None:
    """The wall-clock time in an input; None for a day and for anything else."""
    try:
        wall = datetime.fromisoformat(typed) if "T" in typed else None
    except ValueError:
        return None
    return wall if wall and wall.tzinfo is None else None


def is_skipped(wall: datetime, zone: Zone) -> bool:
    """Whether clocks that are set forward skip this time."""
    return zone.to_wall(zone.to_utc(wall)) != wall


class Note(NamedTuple):
    """How a value is understood, and whether that may be a surprise."""

    text: str
    is_warning: bool = False


def note_of(typed: str, zone: Zone, page: PageContext, utc: datetime | None = None) -> Note:
    """What is meant by a time; `utc` is the instant that is stored for it, if there is one."""
    if (wall := read_wall(typed)) is None:
        return Note(zone.name)
    try:
        return _note(wall, zone, page, utc)
    except ValueError as error:  # outside the years that can be shown
        return Note(translate(error.args[0], page.language), is_warning=True)


def _note(wall: datetime, zone: Zone, page: PageContext, utc: datetime | None) -> Note:
    first, last = zone.to_utc(wall), zone.to_utc(wall, is_last=True)
    shown = page.local.time(wall)
    if is_skipped(wall, zone):
        meant = page.local.time(zone.to_wall(first))
        return Note(
            page.text(SKIPPED, time=shown, meant=meant, zone=zone.abbreviation(first)), is_warning=True
        )
    if first == last:
        return Note(f"{zone.name}, {offset_of(wall - first)}")
    instant = utc or first
    values = {"time": shown, "zone": zone.abbreviation(instant), "offset": offset_of(wall - instant)}
    return Note(page.text(TWICE, **values), is_warning=True)


def offset_of(ahead: timedelta) -> str:
    minutes = round(ahead.total_seconds() / 60)
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def with_times(form: Form) -> list[FormField]:
    """The changed fields, with all times of an event if one of them is changed: another zone or whole days
    move both the start and the end."""
    names = {one.name for one in form.changed}
    if not names.isdisjoint(TIME_FIELDS):
        names |= {*TIME_FIELDS}
    return [one for one in form.fields if one.name in names]


def skipped_times(form: Form, page: PageContext) -> list[str]:
    """Names of the fields whose times do not exist after the change."""
    found = []
    for one in with_times(form):
        wall = read_wall(str(one.raw)) if one.widget.macro == "moment" else None
        if wall and not form.text("all_day") and is_skipped(wall, zone_of(form, one, page)):
            found.append(one.name)
    return found
