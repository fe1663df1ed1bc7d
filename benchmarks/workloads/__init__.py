"""The workloads: which requests are sent, over how many connections."""

from __future__ import annotations

from functools import partial

from benchmarks.facts import Facts
from benchmarks.workloads.asking import Asking
from benchmarks.workloads.different import Different
from benchmarks.workloads.workload import NOT_EVE, Workload

SIXTEEN = 16
ALONE = ("kalends",)
SEARCHED = 100_000
"""With more events the peers are left out of different searches: one takes them up to half a minute."""


def workloads(asking: Asking, facts: Facts, rounds: int) -> list[Workload]:
    plain = asking.plain
    different = Different(facts, plain.since, plain.until, rounds)
    searched = NOT_EVE if facts.number <= SEARCHED else ALONE
    return [*all_different(different, searched), *repeated(asking, facts), *others(asking)]


def all_different(different: Different, searched: tuple[str, ...]) -> list[Workload]:
    """Requests that are new to the process."""

    def lists(name: str, title: str, **more: object) -> Workload:
        return Workload(
            name,
            title,
            different.lists,
            different.warm_up,
            connections=SIXTEEN,
            once=True,
            whole=True,
            fresh=True,
            **more,  # type: ignore[arg-type]
        )

    return [
        lists("different", "Different lists", systems=NOT_EVE),
        lists("changing", "Different lists, 20 changes a second", systems=ALONE, beside="changes"),
        Workload(
            "start",
            "Different lists right after a start",
            different.right_after_start,
            connections=SIXTEEN,
            once=True,
            fresh=True,
            cold=True,
            systems=ALONE,
        ),
        Workload(
            "searches",
            "Different searches for parts of words",
            different.searches,
            different.first_searches,
            checked=10,
            connections=SIXTEEN,
            once=True,
            systems=searched,
        ),
        Workload(
            "places",
            "Different places",
            different.places,
            different.first_places,
            connections=SIXTEEN,
            once=True,
            systems=NOT_EVE,
        ),
    ]


def repeated(asking: Asking, facts: Facts) -> list[Workload]:
    """Lists of which each repeats one address, so that they show how fast a cache is."""

    def one(name: str, title: str, **filter: object) -> Workload:
        return Workload(name, f"{title} (one address repeated)", lambda: asking.listing(**filter))

    default = "Default list"
    place = (0.0, 0.0, 150.0)
    return [
        one("list", default),
        one("category", "List by category", category=facts.category),
        one("venue", "List by venue", venue=facts.venue),
        Workload("window", "Date window of 30 days (one address repeated)", lambda: [asking.window]),
        one("search", "Search for a rare word", word=facts.word),
        one("radius", "Within 150 km of a place", place=place),
        Workload(
            "neighbour",
            f"{default} (one address repeated), 50 writes a second to another database",
            asking.listing,
            systems=ALONE,
            beside="neighbour",
        ),
        Workload("workers", f"{default} (one address repeated), two processes", asking.listing, two=True),
    ]


def others(asking: Asking) -> list[Workload]:
    many, one, deep = 64, 1, asking.deep_page

    def pages(name: str, title: str, first: int) -> Workload:
        make, warm = partial(asking.pages, first), partial(asking.next_pages, first)
        return Workload(name, title, make, warm, connections=one, once=True, fresh=True, systems=ALONE)

    return [
        pages("pages", "First pages of the list, each once", 1),
        pages("deep", f"Pages from {deep:,} of the list, each once", deep),
        Workload(
            "item", "One event by id, each once", asking.items, asking.first_items, once=True, fresh=True
        ),
        Workload("again", "One of 1,000 events by id", lambda: asking.items()[:1000]),
        Workload(
            "slug", "One event by slug, each once", asking.slugs, asking.first_slugs, once=True, fresh=True
        ),
        Workload("create", "Create an event", asking.created, connections=many),
        Workload("create_one", "Create an event, one connection", asking.created, connections=one),
        Workload("create_two", "Create an event, two processes", asking.created, connections=many, two=True),
        Workload("import", "Import events from a file", asking.created, systems=ALONE, imports=True),
        Workload("update", "Change an event's title", asking.updates),
        Workload("fanout", "Rename a venue of 1,000 events", asking.renamings, connections=one),
        Workload("mixed", "95 % reads (one list repeated), 5 % writes", asking.mixed),
    ]
