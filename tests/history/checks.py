"""After the faults: compares what a service shows with the history, and with itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.history.entries import Creation
from tests.history.observing import linked
from tests.history.recording import History
from tests.history.snapshot import Records, Snapshot

TRASHED = "__trashed"


def differences(history: History, shown: Snapshot) -> Iterator[str]:
    """Everything that is wrong, except copies and counts."""
    yield from wrong_creations(history, shown)
    yield from wrong_registers(history, shown)
    yield from wrong_chains(history, shown["events"])
    yield from wrong_deletions(history, shown)
    yield from shared_names(shown)
    yield from wrong_tree(shown["categories"])


# Compared with the history


def wrong_creations(history: History, shown: Snapshot) -> Iterator[str]:
    events = shown["events"]
    titles: defaultdict[str, list[int]] = defaultdict(list)
    for id, event in events.items():
        titles[event["title"]].append(id)
    halls = Counter(venue["venue"].partition(".")[0] for venue in shown["venues"].values())
    tags = Counter(tag["name"] for tag in shown["tags"].values())
    sent = {creation.title for creation in history.creations}
    for creation in history.creations:
        for acknowledged in creation.acknowledged:
            yield from wrong_event(acknowledged, events)
        ids = titles[creation.title]
        if not any(("events", one["id"], "title") in history.registers for one in creation.acknowledged):
            yield from wrong_number(creation, ids)
        for what, name, found in (("venue", creation.hall, halls), ("tag", creation.only_tag, tags)):
            if name and found[name] != len(ids):
                yield f"{what} {name!r} exists {found[name]} times, its event {len(ids)} times"
    for id, event in events.items():
        if event["title"] not in sent and ("events", id, "title") not in history.registers:
            yield f"event {id}: {event['title']!r} was never sent"


def wrong_event(acknowledged: dict[str, Any], events: Records) -> Iterator[str]:
    id = acknowledged["id"]
    if id not in events:
        yield f"event {id} {acknowledged['title']!r} was acknowledged and is lost"
        return
    slug = acknowledged["slug"] + (TRASHED if events[id]["status"] == "trash" else "")
    if events[id]["slug"] != slug:
        yield f"event {id}: has the slug {events[id]['slug']!r}, not {slug!r}"


def wrong_number(creation: Creation, ids: list[int]) -> Iterator[str]:
    least, most = len(creation.acknowledged), creation.twins - creation.refused
    if not least <= len(ids) <= most:
        yield f"{creation.title!r} exists {len(ids)} times, acknowledged {least}, sent {most}: {ids}"


def wrong_registers(history: History, shown: Snapshot) -> Iterator[str]:
    gone = frozenset(id for plural, id in history.deleting if plural == "tags")
    for (plural, id, name), register in history.registers.items():
        record = shown[str(plural)].get(id)  # type: ignore[call-overload]
        if record is None:
            yield f"{plural} {id}: was acknowledged and is lost"
            continue
        value = record[name]
        allowed = [register.value, *register.possible]
        if name == "tags":
            value = frozenset(tag["id"] for tag in value) - gone
            allowed = [one - gone for one in allowed]
        if value not in allowed:
            yield f"{plural} {id}: {name} is {value!r}, acknowledged {register.shown()}"


def wrong_chains(history: History, events: Records) -> Iterator[str]:
    for id, chain in history.chains.items():
        tokens = Counter(events[id]["description"].split() if id in events else [])
        yield from (
            f"event {id}: {one} was acknowledged and is lost" for one in chain.acknowledged if not tokens[one]
        )
        yield from (f"event {id}: {one} was refused and is there" for one in chain.refused if tokens[one])
        yield from (
            f"event {id}: {one} was applied {times} times" for one, times in tokens.items() if times > 1
        )


def wrong_deletions(history: History, shown: Snapshot) -> Iterator[str]:
    for plural, id in history.deleted:
        if id in shown[plural]:
            yield f"{plural} {id}: was deleted and is back"
    for creation in history.creations:
        for event in creation.acknowledged:
            for plural in ("categories", "tags"):
                for term in event[plural]:
                    if term["id"] not in shown[plural] and (plural, term["id"]) not in history.deleting:
                        yield f"{plural} {term['id']}: {term['name']!r} is lost"


# Compared with itself


def shared_names(shown: Snapshot) -> Iterator[str]:
    for plural, records in shown.kinds.items():
        slugs = Counter(record["slug"] for record in records.values())
        yield from (f"{plural}: slug {slug!r} {times} times" for slug, times in slugs.items() if times > 1)
    names = Counter(tag["name"] for tag in shown["tags"].values())
    yield from (f"tags: {name!r} {times} times" for name, times in names.items() if times > 1)
    for space in (("events", "venues", "organizers"), ("categories", "tags")):
        ids = Counter(id for plural in space for id in shown[plural])
        yield from (f"{space}: id {id} {times} times" for id, times in ids.items() if times > 1)


def wrong_tree(categories: Records) -> Iterator[str]:
    for id, category in categories.items():
        above = {id}
        parent = category["parent"]
        while parent:
            if parent in above:
                yield f"category {id}: is its own ancestor, or below a cycle"
                break
            if parent not in categories:
                yield f"category {id}: its ancestor {parent} does not exist"
                break
            above.add(parent)
            parent = categories[parent]["parent"]


def wrong_copies(shown: Snapshot) -> Iterator[str]:
    """Fanout that differ from their record. They may lag behind until maintenance has run."""
    for id, event in shown["events"].items():
        for plural, copies in linked(event).items():
            for copy in copies:
                record = shown[plural].get(copy["id"], {})
                wrong = {
                    name: (value, record.get(name))
                    for name, value in copy.items()
                    if record.get(name) != value
                }
                if wrong:
                    yield f"event {id}: the copy of {plural} {copy['id']} differs: {wrong}"


def wrong_halls(history: History, shown: Snapshot) -> Iterator[str]:
    """An event shows the venue that was created with it, unless that is in the trash."""
    for creation in history.creations:
        for acknowledged in creation.acknowledged if creation.hall else ():
            (venue,) = linked(acknowledged)["venues"]
            event = shown["events"].get(acknowledged["id"])
            hall = shown["venues"].get(venue["id"])
            if event and hall:
                is_shown = venue["id"] in [one["id"] for one in linked(event)["venues"]]
                if is_shown == (hall["status"] == "trash"):
                    yield f"event {event['id']}: its venue is {hall['status']}, shown: {is_shown}"


def wrong_counts(shown: Snapshot) -> Iterator[str]:
    for plural in ("categories", "tags"):
        uses = Counter(
            term["id"]
            for event in shown["events"].values()
            if event["status"] == "publish"
            for term in event[plural]
        )
        for id, term in shown[plural].items():
            if term["count"] != uses[id]:
                yield f"{plural} {id}: counts {term['count']}, but {uses[id]} events have it"
