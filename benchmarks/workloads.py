"""The workloads: which requests are sent, over how many connections."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from benchmarks.asks import Ask, BySlug, Create, Item, Listing, RenameVenue, Update
from benchmarks.facts import PER_PAGE, Facts

POPULATION = 20_000
"""Number of random events to request; all of them if there are fewer."""
CREATED = 12_000
"""Number of events to create: more than all rounds can, so that titles are new."""
DEEP = 50_000


@dataclass(frozen=True)
class Workload:
    """Requests that are repeated for a while; `two` compares two processes of Kalends with one."""

    name: str
    title: str
    asks: list[Ask]
    connections: int | None = None
    two: bool = False

    @property
    def lists(self) -> bool:
        return all(isinstance(ask, Listing) for ask in self.asks)


class Asking:
    """Generates the requests for the loaded data."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._chance, self._new = random.Random(11), random.Random()
        seen = [facts.first + at for at in range(facts.number) if not (facts.public and at % 20 == 7)]
        self.ids = self._chance.sample(seen, min(len(seen), POPULATION))
        today = datetime.now(UTC).date()
        self.plain = Listing(today, in_two_years(today))
        self.window = Listing(today + timedelta(100), today + timedelta(130), usual=False)

    def listing(self, **filter: object) -> list[Ask]:
        return [Listing(self.plain.since, self.plain.until, **filter)]  # type: ignore[arg-type]

    def title(self) -> str:
        """A title that earlier runs on the same data have not used."""
        return " ".join(self._new.choices(self._facts.words, k=5))

    def items(self) -> list[Ask]:
        return [Item(id) for id in self.ids]

    def slugs(self) -> list[Ask]:
        return [BySlug(id, f"event-{id - self._facts.first}") for id in self.ids]

    def created(self) -> list[Ask]:
        return [self._create() for _ in range(CREATED)]

    def _create(self) -> Create:
        start = datetime.combine(self.plain.since, datetime.min.time())
        start += timedelta(minutes=self._chance.randrange(700 * 24 * 60))
        description = " ".join(self._chance.choices(self._facts.words, k=95))
        return Create(self.title(), description, start, start + timedelta(hours=3))

    def updates(self) -> list[Ask]:
        return [Update(id, self.title()) for id in self.ids]

    def renamings(self) -> list[Ask]:
        return [RenameVenue(self._facts.popular, f"venue 199, {word}") for word in self._facts.words]

    def mixed(self) -> list[Ask]:
        """Of forty requests, nineteen list, nineteen read one event, one creates and one updates."""
        parts = (self.items(), self.created(), self.updates())
        rounds = min(map(len, parts)) // 20
        found: list[Ask] = [self.plain] * (19 * rounds)
        for part, share in zip(parts, (19, 1, 1), strict=True):
            found += part[: share * rounds]
        self._chance.shuffle(found)
        return found


def in_two_years(today: date) -> date:
    try:
        return today.replace(year=today.year + 2)
    except ValueError:  # the 29th of February
        return today.replace(year=today.year + 2, day=28)


def workloads(asking: Asking, facts: Facts) -> list[Workload]:
    place = (0.0, 0.0, 150.0)
    found = [
        Workload("list", "Default list", asking.listing()),
        Workload("category", "List by category", asking.listing(category=facts.category)),
        Workload("venue", "List by venue", asking.listing(venue=facts.venue)),
        Workload("window", "Date window of 30 days", [asking.window]),
        Workload("search", "Search for a rare word", asking.listing(word=facts.word)),
        Workload("radius", "Within 150 km of a place", asking.listing(place=place)),
        Workload("item", "One event by id", asking.items()),
        Workload("again", "One of 1,000 events by id", asking.items()[:1000]),
        Workload("slug", "One event by slug", asking.slugs()),
        Workload("create", "Create an event", asking.created()),
        Workload("update", "Change an event's title", asking.updates()),
        Workload("fanout", "Rename a venue of 1,000 events", asking.renamings(), connections=1),
        Workload("mixed", "95 % reads, 5 % writes", asking.mixed()),
    ]
    if facts.number > DEEP * PER_PAGE * 1.1:
        found.append(Workload("deep", f"Page {DEEP:,} of the list", asking.listing(page=DEEP)))
    return [*found, Workload("workers", "Default list, two processes", asking.listing(), two=True)]
