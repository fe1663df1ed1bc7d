"""The time zones that an iCalendar file defines and names."""

from __future__ import annotations

import re
from datetime import date

from icalendar import Calendar, vRecur
from icalendar.timezone import tzid_from_tzinfo, tzp

from schemas.values.zones import Zone, parse_zone
from service.imports.ical.rules import Unreadable, check_rule

CALENDAR = "BEGIN:VCALENDAR\r\n{}END:VCALENDAR\r\n"
ZONE_NAME = re.compile(r"^TZID[^:\r]*:(.*)\r$", re.IGNORECASE | re.MULTILINE)
ZONE_RULE = re.compile(r"^RRULE[^:\r]*:(.*)\r$", re.IGNORECASE | re.MULTILINE)
ZONE_WINDOW = date(1601, 1, 1), date(2039, 1, 1)
"""The years that Outlook and the library use for rules of time zones."""


def define_zone(text: str) -> None:
    """Make a zone known to the events that refer to it. If its name means one that is known anyway, as the
    names of Windows do, that one is used: events can be shown with its name."""
    unfolded = re.sub(r"\r\n[ \t]", "", text)
    if (name := ZONE_NAME.search(unfolded)) and tzp.timezone(name[1].strip()):
        return
    for value in ZONE_RULE.findall(unfolded):
        rule = vRecur.from_ical(value)
        if [str(frequency).upper() for frequency in rule.get("FREQ", ())] != ["YEARLY"]:
            raise Unreadable(f"RRULE: {value} is not the rule of a time zone")
        check_rule(rule, *ZONE_WINDOW)
    Calendar.from_ical(CALENDAR.format(text))


def known_zone(name: str, default: Zone) -> Zone:
    """The zone with a name, which may be that of Windows."""
    found = tzp.timezone(name)
    try:
        return parse_zone((tzid_from_tzinfo(found) if found else None) or name)
    except ValueError:
        return default
