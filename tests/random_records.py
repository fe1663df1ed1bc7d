"""Bodies of random records with every field that they can have, the same ones for the same seed."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

TEXTS = (
    *("", "Jazz", "R&B & Soul <3", "Ärger über 🎷", "x<y", '"quoted"', "O'Neill"),
    *("a\nb", "1 > 0", "&lt;b&gt;", "50 % — 🏳️‍🌈"),
)
HTML = (
    "<p>Doors at 7.</p>",
    "<p>Tom & Jerry <3 R&B</p>",
    "<h2>Programme</h2>\n<ul><li>one</li><li>two</li></ul>",
    'See <a href="https://example.org/?a=1&b=2" title="more">here</a><br />',
    "<b>W</b>orkshop <script>alert(1)</script>",
    '<p style="color:red;position:fixed">red</p>',
    "never closed <foo and more",
)
IMAGES = (None, False, 17, "https://example.org/a.png", "https://example.org/L'Aquila.jpg")
WEBSITES = (None, "", "https://example.org", "http://example.org/a?b=c&d=é")
COSTS = (None, "", 0, 12, "€15", "10–20 €", "Free", "$1,200.50", "pay what you want", "ab 10 €")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC+5:30", "-03:00")
CLOCK_CHANGES = ("2027-03-14", "2027-03-28", "2027-04-04", "2027-10-31", "2027-11-07")
MORE_ZONES = ("Australia/Lord_Howe", "Africa/Casablanca", "Europe/Dublin", "America/Santiago", "Pacific/Apia")
LETTERS = "aé€🎷🏳️‍🌈\\;,"
"""Characters of one to four octets, joined ones, and those that formats escape."""
STATUSES = ("publish", "publish", "draft", "pending", "private", "cancelled")


class Bodies:
    """Makes bodies of any kind."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def body(self, kind: str) -> dict[str, Any]:
        made: dict[str, Any] = getattr(self, kind)()
        return {name: value for name, value in made.items() if self._chance.random() < 0.8 or name in NEEDED}

    def text(self) -> str:
        return self._chance.choice(TEXTS)

    def name(self) -> str:
        return f"{self.text()} No. {self._chance.randrange(10**9)}"

    def html(self) -> str:
        return self._chance.choice((*TEXTS, *HTML))

    def flag(self) -> bool | None:
        return self._chance.choice((True, False, None))

    def _post(self) -> dict[str, Any]:
        pick = self._chance.choice
        return {
            "description": self.html(),
            "status": pick(STATUSES),
            "image": pick(IMAGES),
            "website": pick(WEBSITES),
            "date": pick((None, "2020-02-29 12:00:00", "2026-01-01")),
            "author": pick((None, 3)),
        }

    def event(self) -> dict[str, Any]:
        pick, day = self._chance.choice, self._chance.randrange(1, 28)
        flags = (
            "all_day",
            "show_map",
            "show_map_link",
            "hide_from_listings",
            "sticky",
            "featured",
            "ticketed",
        )
        return {
            **self._post(),
            **{name: self.flag() for name in flags},
            "title": self.name(),
            "start_date": f"2027-03-{day:02} 0{self._chance.randrange(10)}:30:00",
            "end_date": f"2027-0{pick((4, 5))}-0{self._chance.randrange(1, 10)} 12:00",
            "timezone": pick(ZONES),
            "excerpt": self.html(),
            "cost": pick(COSTS),
            "categories": [self.name() for _ in range(pick((0, 1, 3)))],
            "tags": [self.name() for _ in range(pick((0, 2)))],
            "venue": [self.body("venue") for _ in range(pick((0, 1, 1, 2)))],
            "organizer": [self.body("organizer") for _ in range(pick((0, 1, 2)))],
        }

    def public_event(self) -> dict[str, Any]:
        """An event that everybody sees, near a change of the clocks, with texts that are folded anywhere."""
        chance = self._chance
        start = datetime.fromisoformat(chance.choice(CLOCK_CHANGES)) + timedelta(
            minutes=15 * chance.randrange(20)
        )
        end = start + timedelta(minutes=chance.choice((0, 15, 60, 180, 24 * 60, 50 * 60)))
        places = [self.body("venue") | {"status": "publish"} for _ in range(chance.choice((0, 1, 2)))]
        people = [self.body("organizer") | {"status": "publish"} for _ in range(chance.choice((0, 1, 2)))]
        return self.body("event") | {
            "title": f"{self.name()} {self.letters()}",
            "description": f"<p>{self.letters()}</p>{self.html()}",
            "start_date": f"{start:%Y-%m-%d %H:%M}",
            "end_date": f"{end:%Y-%m-%d %H:%M}",
            "timezone": chance.choice(ZONES + MORE_ZONES),
            "status": "publish",
            "hide_from_listings": False,
            "venue": places,
            "organizer": people,
        }

    def letters(self) -> str:
        return "".join(self._chance.choices(LETTERS, k=self._chance.randrange(5, 200)))

    def venue(self) -> dict[str, Any]:
        place = ("address", "city", "country", "province", "state", "stateprovince", "zip", "phone")
        at = self._chance.choice(({}, {"geo_lat": 48.85, "geo_lng": -2.5}))
        flags = {name: self.flag() for name in ("show_map", "show_map_link")}
        return {**self._post(), **flags, **{name: self.text() for name in place}, "venue": self.name()} | at

    def organizer(self) -> dict[str, Any]:
        email = self._chance.choice(("", "a.b@example.org"))
        return {**self._post(), "organizer": self.name(), "phone": self.text(), "email": email}

    def category(self) -> dict[str, Any]:
        return {"name": self.name(), "description": self.html()}

    tag = category


NEEDED = ("title", "start_date", "end_date", "venue", "organizer", "name", "geo_lat", "geo_lng")
