"""The requests to the loaded data, except those for different lists."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

from benchmarks.asks import Ask, BySlug, Create, Item, Listing, Move, RenameVenue, Update
from benchmarks.facts import PER_PAGE, Facts

POPULATION = 20_000
"""Number of random events to request; all of them if there are fewer."""
FIRST = 200
"""Number of these that are requested before the measurement."""
CREATED = 12_000
"""Number of events to create: more than all rounds can, so that titles are new."""
DEEP = 50_000
PAGES = 300
"""Number of consecutive pages to request."""
SPAN = timedelta(days=700)
"""The events of the data start within this time."""


class Asking:
    """Generates the requests for the loaded data."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._chance, self._new = random.Random(11), random.Random()
        seen = [facts.first + at for at in range(facts.number) if not (facts.public and at % 20 == 7)]
        self.ids = self._chance.sample(seen, min(len(seen), POPULATION))
        today = datetime.now(UTC).date()
        self.plain = Listing(today, in_two_years(today))
        self.window = Listing(today + timedelta(100), today + timedelta(130), first=True, last=True)

    def listing(self, **filter: object) -> list[Ask]:
        return [Listing(self.plain.since, self.plain.until, **filter)]  # type: ignore[arg-type]

    def title(self) -> str:
        """A title that earlier runs on the same data have not used."""
        return " ".join(self._new.choices(self._facts.words, k=5))

    def items(self) -> list[Ask]:
        return [Item(id) for id in self.ids[FIRST:]]

    def first_items(self) -> list[Ask]:
        return [Item(id) for id in self.ids[:FIRST]]

    def slugs(self) -> list[Ask]:
        return [self._by_slug(id) for id in self.ids[FIRST:]]

    def first_slugs(self) -> list[Ask]:
        return [self._by_slug(id) for id in self.ids[:FIRST]]

    def _by_slug(self, id: int) -> Ask:
        return BySlug(id, f"event-{id - self._facts.first}")

    def created(self) -> list[Ask]:
        return [self._create() for _ in range(CREATED)]

    def _create(self) -> Create:
        start = self._start()
        description = " ".join(self._chance.choices(self._facts.words, k=95))
        return Create(self.title(), description, start, start + timedelta(hours=3))

    def _start(self) -> datetime:
        midnight = datetime.combine(self.plain.since, datetime.min.time())
        return midnight + timedelta(minutes=self._chance.randrange(SPAN // timedelta(minutes=1)))

    def moves(self) -> list[Ask]:
        """New titles and dates for random events."""
        starts = ((id, self._start()) for id in self.ids)
        return [Move(id, self.title(), start, start + timedelta(hours=3)) for id, start in starts]

    @property
    def deep_page(self) -> int:
        """Page 50,000, or one beyond the middle if there are fewer events."""
        return min(DEEP, self._facts.number * 6 // 10 // PER_PAGE)

    def pages(self, first: int) -> list[Ask]:
        """Consecutive pages of the default list, in random order."""
        return self._pages(first, first + self._fewest())

    def next_pages(self, first: int) -> list[Ask]:
        """A few pages after those."""
        return self._pages(first + self._fewest(), first + self._fewest() + 10)

    def _fewest(self) -> int:
        return min(PAGES, self.deep_page // 4)

    def _pages(self, first: int, end: int) -> list[Ask]:
        numbers = list(range(first, end))
        self._chance.shuffle(numbers)
        return [Listing(self.plain.since, self.plain.until, page=number) for number in numbers]

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
