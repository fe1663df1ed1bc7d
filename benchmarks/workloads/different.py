"""Lists, searches and places that are all different: none is requested twice in a run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import chain, islice, product, zip_longest
from typing import Any

from benchmarks.asks import Ask, Listing
from benchmarks.facts import DISTINCT, SEED, Facts
from benchmarks.words import vocabulary

DAYS = 300
"""The measured lists begin on one of this many days."""
WARM, START = range(DAYS, DAYS + 40), range(DAYS + 40, DAYS + 80)
"""First days of the lists for warming up, and of those right after a start."""
PER_ROUND = 4000
PAGES = range(1, 9)
LONGEST = 8
FEWEST_WARM = 40


class Different:
    """Generates lists in random order; the same ones in every run on the same day."""

    def __init__(self, facts: Facts, today: date, until: date, rounds: int) -> None:
        self._facts = facts
        self._today, self._until = today, until
        self._rounds = rounds

    def lists(self) -> list[Ask]:
        """For each round, 4,000 lists with the same mixture of filters, in random order."""
        chance = random.Random(5)
        kinds = [self._combined(chance, range(DAYS), filters) for filters in self._filters()]
        found: list[Ask] = []
        for _ in range(self._rounds):
            part = list(islice(chain.from_iterable(self._share(kinds)), PER_ROUND))
            chance.shuffle(part)
            found += part
        return found

    def _share(self, kinds: list[Iterator[Ask]]) -> Iterator[Iterator[Ask]]:
        """A fifth are pages of all events, while they last; categories, venues and tags share the rest."""
        pages = min(PER_ROUND // 5, DAYS * len(PAGES) // self._rounds)
        yield islice(kinds[0], pages)
        for kind in kinds[1:]:
            yield islice(kind, -(-(PER_ROUND - pages) // 3))

    def warm_up(self) -> list[Ask]:
        return self._each_filter(random.Random(6), WARM)

    def right_after_start(self) -> list[Ask]:
        return self._each_filter(random.Random(8), START)

    def _filters(self) -> list[list[dict[str, Any]]]:
        linked = {"category": self._facts.categories, "venue": self._facts.venues, "tag": self._facts.tags}
        pages = [{"page": page} for page in PAGES]
        return [pages, *([{name: id} for id in ids] for name, ids in linked.items())]

    def _each_filter(self, chance: random.Random, days: Iterable[int]) -> list[Ask]:
        """One list for each filter, pages, categories, venues and tags in turn."""
        choice = list(days)
        kinds = ([self._from(chance.choice(choice), **one) for one in some] for some in self._filters())
        return [one for turn in zip_longest(*kinds) for one in turn if one]

    def _combined(
        self, chance: random.Random, days: Iterable[int], filters: list[dict[str, Any]]
    ) -> Iterator[Ask]:
        found = [self._from(day, **one) for day, one in product(days, filters)]
        chance.shuffle(found)
        return iter(found)

    def _from(self, day: int, **filter: Any) -> Ask:
        return Listing(self._today + timedelta(day), self._until, first=True, **filter)

    def searches(self) -> list[Ask]:
        """Parts of words, of three to eight letters."""
        return self._searches()[FEWEST_WARM:]

    def first_searches(self) -> list[Ask]:
        return self._searches()[:FEWEST_WARM]

    def _searches(self) -> list[Ask]:
        chance = random.Random(9)
        words = vocabulary(DISTINCT, random.Random(SEED))
        found: dict[str, None] = {}
        while len(found) < PER_ROUND * self._rounds + FEWEST_WARM:
            word = chance.choice(words)
            length = chance.randint(3, LONGEST)
            if len(word) >= length:
                at = chance.randint(0, len(word) - length)
                found[word[at : at + length]] = None
        return [Listing(self._today, self._until, word=part) for part in found]

    def places(self) -> list[Ask]:
        """Circles with a few venues each, from a first day."""
        return self._places()[FEWEST_WARM:]

    def first_places(self) -> list[Ask]:
        return self._places()[:FEWEST_WARM]

    def _places(self) -> list[Ask]:
        chance = random.Random(10)
        return [self._near(chance) for _ in range(PER_ROUND * self._rounds + FEWEST_WARM)]

    def _near(self, chance: random.Random) -> Ask:
        """The venues lie on a line from the south-west to the north-east."""
        along = chance.uniform(-1, 1)
        lat, lng = 80 * along + chance.uniform(-2, 2), 170 * along + chance.uniform(-2, 2)
        place = (round(lat, 4), round(lng, 4), float(chance.randrange(100, 800)))
        return self._from(chance.randrange(DAYS), place=place)
