"""Preparation before measuring: collects facts, checks that all systems agree, creates collections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.asks import Ask, Item, Listing
from benchmarks.facts import Answer, Facts
from benchmarks.running import Running
from benchmarks.workloads.workload import Workload

PRIVATE = ("tok", "text", "sort", "last_change", "has_own_time", "password")
WRITERS = ("eve", "beanie", "fastify")


def look_at_data(database: Any, facts: Facts) -> None:
    hidden = dict.fromkeys(PRIVATE, 0) | {"_id": 0}
    query = {"venue._id": facts.venue, "categories._id": facts.category, "status": "publish"}
    facts.sample = database["events"].find_one(query, hidden)
    facts.stored = int(database.command("collStats", "events")["avgObjSize"])


def look_at_answers(kalends: Running, loads: Iterable[Workload], facts: Facts, *, lists: bool) -> None:
    """Records the size of each response and the content of lists. Lists go first: other requests write."""
    asked = [ask for load in loads for ask in looked_at(load) if isinstance(ask, Listing) is lists]
    for ask in asked:
        request = kalends.dialect.request(ask)
        assert request
        body = kalends.answer(request)
        if isinstance(ask, Listing):
            facts.listed[ask] = kalends.dialect.page(body)
        else:
            facts.sizes[type(ask)] = len(body)


def looked_at(load: Workload) -> list[Ask]:
    """Every list once, and one request of each other type; nothing that must be new when it is measured."""
    if load.cold or load.imports:
        return []
    found: dict[Any, Ask] = {}
    for ask in load.warm[: load.checked] or load.asks:
        found.setdefault(ask if isinstance(ask, Listing) else type(ask), ask)
    return list(found.values())


def agree(systems: Iterable[Running], loads: Iterable[Workload], facts: Facts) -> None:
    """Checks that every system returns the same events in the same order, and the same total if any."""
    for load in loads:
        able = [one for one in systems if not load.systems or one.system.key in load.systems]
        for ask in looked_at(load):
            if isinstance(ask, Listing):
                for one in able:
                    compare(one, ask, facts.listed[ask])


def compare(one: Running, ask: Listing, wanted: Answer) -> None:
    request = one.dialect.request(ask)
    found = one.dialect.page(one.answer(request)) if request and one.system.key != "constant" else wanted
    if found.ids != wanted.ids or found.total not in (wanted.total, None):
        raise RuntimeError(f"{one.system.title} and Kalends differ on {ask}: {found}, expected {wanted}")


def make_collections(database: Any, ids: list[int], facts: Facts) -> None:
    """Creates the collections that the other systems write to, and the ready-made bodies of single events."""
    items = database["bench_motor_item"]
    items.drop()
    body = bytes(facts.sizes.get(Item, 1))
    items.insert_many([{"_id": id, "body": body} for id in ids])
    chosen = [{"$match": {"_id": {"$in": ids}}}, {"$unset": list(PRIVATE)}]
    for name in (*WRITERS, "motor"):
        database["events"].aggregate([*chosen, {"$out": f"bench_{name}_changed"}])
    for name in WRITERS:
        copy_indexes(database, f"bench_{name}_changed")
        copy_indexes(database, f"bench_{name}_new")


def copy_indexes(database: Any, name: str) -> None:
    """Copies the indexes of events on public fields. Slugs need not be unique: the peers do not ensure it."""
    for index, about in database["events"].index_information().items():
        fields = [field for field, _ in about["key"]]
        if index != "_id_" and not any(field.split(".")[0] in PRIVATE for field in fields):
            database[name].create_index(about["key"], name=index)
