"""Damage that somebody does to the database by hand, and what `kalends doctor` says about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

from bson import Timestamp

from tests.checker import LONG_AGO

Plant = Callable[[Any], Awaitable[Any]]


class Damage(NamedTuple):
    """What somebody does to the database by hand, and what is said about it."""

    name: str
    plant: Plant
    lines: list[str]
    """The beginning of each line that is printed."""
    changed: set[str]
    """Records that have another version after the repair, since their representation has changed."""

    @property
    def is_counted(self) -> bool:
        """Whether it is about counters. Otherwise these may be found as well: they do not fit the damage."""
        return any(": counters: " in line for line in self.lines)


def on(collection: str, id: Any, **values: Any) -> Plant:
    """Sets fields of a document; dots are written as two underscores, and `...` removes a field."""

    async def plant(database: Any) -> None:
        named = {name.replace("__", "."): value for name, value in values.items()}
        change = {"$set": {name: value for name, value in named.items() if value is not ...}}
        change |= {"$unset": {name: "" for name, value in named.items() if value is ...}}
        done = await database[collection].update_one({"_id": id}, {a: b for a, b in change.items() if b})
        assert done.modified_count == 1

    return plant


def inserted(collection: str, **document: Any) -> Plant:
    async def plant(database: Any) -> None:
        await database[collection].insert_one(
            {name.replace("id_", "_id"): one for name, one in document.items()}
        )

    return plant


def removed(collection: str, id: Any) -> Plant:
    return lambda database: database[collection].delete_one({"_id": id})


def both(*plants: Plant) -> Plant:
    async def plant(database: Any) -> None:
        for one in plants:
            await one(database)

    return plant


def pushed(id: int, field: str, copy: Callable[[Any], Any]) -> Plant:
    """Adds a copy to an event, made from the event."""

    async def plant(database: Any) -> None:
        event = await database["events"].find_one({"_id": id})
        await database["events"].update_one({"_id": id}, {"$push": {field: copy(event)}})

    return plant


def dropped(collection: str, index: str) -> Plant:
    return lambda database: database[collection].drop_index(index)


async def added_copy(database: Any) -> None:
    other = await database["events"].find_one({"_id": 6})
    await database["events"].update_one({"_id": 4}, {"$push": {"venue": other["venue"][0]}})


async def same_slug(database: Any) -> None:
    await database["events"].drop_index("slug")
    await database["events"].update_one({"_id": 11}, {"$set": {"slug": "fair"}})


async def slug_of_a_younger_venue(database: Any) -> None:
    await database["venues"].drop_index("slug")
    await database["venues"].update_one({"_id": 1}, {"$set": {"slug": "barn__trashed"}})


async def claim_of_another(database: Any) -> None:
    await database["categories"].drop_index("claim")
    await database["categories"].update_one({"_id": 1}, {"$set": {"claim": "1:jazz"}})


async def same_number(database: Any) -> None:
    first = await database["words"].find_one({"_id": "concert"})
    await database["words"].update_one({"_id": "fair"}, {"$set": {"n": first["n"]}})


async def other_index(database: Any) -> None:
    await database["events"].drop_index("own")
    await database["events"].create_index([("author", -1)], name="own")


async def not_unique(database: Any) -> None:
    await database["events"].drop_index("slug")
    await database["events"].create_index([("slug", 1)], name="slug")


FUTURE = Timestamp(4_000_000_000, 1)
E4, E7 = {"events 4"}, {"events 7"}
V1 = {"venues 1", "events 4", "events 5", "events 8"}
DAMAGES = [
    # Copies
    Damage(
        "outdated copy",
        on("events", 4, venue__0__version=1, venue__0__phone=None),
        ["event 4: the copy of venue 1 is outdated (version 1, the venue has 2)"],
        E4,
    ),
    Damage(
        "other copy of the same version",
        on("events", 4, venue__0__city="Köln"),
        ["event 4: the copy of venue 1 differs from the venue in city"],
        E4,
    ),
    Damage(
        "copy from the future",
        on("events", 4, venue__0__version=99),
        ["event 4: the copy of venue 1 is outdated (version 99"],
        E4,
    ),
    Damage(
        "copy with another key",
        on("events", 4, tags__0__colour="red"),
        ["event 4: the copy of tag 6 differs from the tag in colour"],
        E4,
    ),
    Damage(
        "copy without its fields",
        on("events", 4, organizer__0={"_id": 3}),
        ["event 4: the copy of organizer 3 is outdated (version None"],
        E4,
    ),
    Damage(
        "copy of nothing",
        pushed(4, "tags", lambda event: event["tags"][0] | {"_id": 77}),
        ["event 4: the copy of tag 77 is of a tag that does not exist"],
        E4,
    ),
    Damage(
        "copy that is there twice",
        pushed(4, "venue", lambda event: event["venue"][0]),
        ["event 4: 1 of the copies in venue are there twice"],
        E4,
    ),
    Damage(
        "copy that is none",
        pushed(4, "venue", lambda event: "Hall"),
        ["event 4: 1 of the copies in venue are there twice or are no copies"],
        E4,
    ),
    Damage("lost links", on("events", 4, venue=...), ["event 4: its links in venue are missing"], E4),
    Damage("missing copy", on("events", 4, venue=[]), ["event 4: the copy of venue 1 is missing"], E4),
    Damage(
        "copy that was added",
        added_copy,
        ["event 4: it has a copy of venue 2 that no change has added"],
        E4,
    ),
    # Counters
    Damage(
        "too many events",
        on("categories", 1, events__publish=7),
        ["category 1: counters: number of events 7, not 1"],
        set(),
    ),
    Damage(
        "another last end",
        on("venues", 1, events__publish_end=LONG_AGO, events__live_end=None),
        [
            "venue 1: counters: latest end 2001-01-01 00:00:00, not 2027-08-02 23:59:59, "
            "latest end with unpublished ones None"
        ],
        set(),
    ),
    Damage("negative counter", on("tags", 6, events__publish=-1), ["tag 6: events is {'publish': -1"], set()),
    Damage("no counters", on("venues", 1, events=...), ["venue 1: events is missing"], set()),
    Damage(
        "counters of the future",
        on("venues", 1, events__as_of=FUTURE),
        ["venue 1: counters: counted as of 2096-10-02"],
        set(),
    ),
    # The tree
    Damage(
        "parent that does not exist",
        on("categories", 3, parent=88),
        ["category 3: its parent 88 does not exist; it belongs below 2"],
        {"categories 3", *E4},
    ),
    Damage(
        "parent of a wrong type",
        on("categories", 2, parent="1"),
        ["category 2: its parent '1' does not exist; it belongs below 1"],
        {"categories 2", "events 5"},
    ),
    Damage(
        "wrong ancestors",
        on("categories", 3, ancestors=[2]),
        ["category 3: its ancestors are [2], not [1, 2]"],
        set(),
    ),
    Damage(
        "no ancestors",
        on("categories", 2, ancestors=...),
        ["category 2: its ancestors are None, not [1]"],
        set(),
    ),
    Damage(
        "cycle",
        on("categories", 1, parent=3),
        ["category 1: its parent 3 is below it; it belongs below none"],
        {"categories 1", *E4, "events 8"},
    ),
    Damage(
        "category below itself",
        on("categories", 2, parent=2),
        ["category 2: its parent 2 is below it; it belongs below 1"],
        {"categories 2", "events 5"},
    ),
    Damage(
        "parent that is a list",
        on("categories", 3, parent=[2]),
        ["category 3: its parent [2] does not exist; it belongs below 2"],
        {"categories 3", *E4},
    ),
    Damage(
        "parent that is true",
        on("categories", 2, parent=True),
        ["category 2: its parent True does not exist; it belongs below 1"],
        {"categories 2", "events 5"},
    ),
    Damage("tag in a tree", on("tags", 6, parent=1, ancestors=[1]), ["tag 6: it is in a tree"], set()),
    Damage("another key", on("tags", 7, key="families"), ["tag 7: key is 'families', not 'family'"], set()),
    Damage(
        "another claim",
        on("tags", 7, claim="0:families"),
        ["tag 7: its claim on a name is '0:families', not '0:family'"],
        set(),
    ),
    Damage(
        "claim below another parent",
        on("categories", 2, claim="3:jazz"),
        ["category 2: its claim on a name is '3:jazz', not '1:jazz'"],
        set(),
    ),
    # Times
    Damage(
        "other start in UTC",
        on("events", 4, start_utc=datetime(2027, 7, 1, 20)),
        ["event 4: start 2027-07-01 20:00:00 in Europe/Berlin and start_utc 2027-07-01 20:00:00 do not "],
        E4,
    ),
    Damage(
        "other end in UTC",
        on("events", 4, end_utc=datetime(2027, 7, 1, 17)),
        ["event 4: end 2027-07-01 23:30:00 in Europe/Berlin and end_utc 2027-07-01 17:00:00 do not agree"],
        E4,
    ),
    Damage(
        "no start in UTC",
        on("events", 4, start_utc=...),
        ["event 4: start 2027-07-01 20:00:00 in Europe/Berlin and start_utc None do not agree"],
        E4,
    ),
    Damage(
        "no local end",
        on("events", 4, end=...),
        ["event 4: end None in Europe/Berlin and end_utc 2027-07-01 21:30:00 do not agree"],
        E4,
    ),
    Damage("no time at all", on("events", 4, start="noon"), ["event 4: start noon in Europe/Berlin"], E4),
    Damage(
        "no start at all",
        on("events", 4, start=..., start_utc=...),
        ["event 4: start None in Europe/Berlin and start_utc None do not agree"],
        E4,
    ),
    Damage(
        "all day, but not quite",
        on("events", 5, start=datetime(2027, 8, 1, 7), start_utc=datetime(2027, 8, 1, 7)),
        ["event 5: it is all-day, but its start is within a day"],
        {"events 5"},
    ),
    Damage(
        "all-day flag",
        on("events", 4, all_day=True),
        ["event 4: it is all-day, but its start and end are within a day"],
        E4,
    ),
    Damage(
        "lost zone of the site",
        on("events", 5, timezone="Mars/Base"),
        ["event 5: timezone is 'Mars/Base', not a time zone"],
        {"events 5"},
    ),
    # Search
    Damage("other words", on("events", 4, tok=[1]), ["event 4: its search fields are wrong: tok"], set()),
    Damage(
        "no search fields",
        on("venues", 1, tok=..., text=..., sort=...),
        ["venue 1: its search fields are wrong: tok, text, sort"],
        set(),
    ),
    Damage(
        "other search text", on("tags", 6, text="indoor"), ["tag 6: its search fields are wrong: text"], set()
    ),
    Damage(
        "other sort key",
        on("organizers", 3, sort="zzz"),
        ["organizer 3: its search fields are wrong: sort"],
        set(),
    ),
    Damage(
        "missing word",
        removed("words", "chairs"),
        ["word 'chairs': it is missing in the vocabulary, but event 4 and others have"],
        set(),
    ),
    Damage(
        "word with another number",
        on("words", "chairs", n=9999),
        [
            "word 'chairs': it has the number 9999, but event 4 and others have",
            "counter word: the last ID is",
        ],
        set(),
    ),
    Damage("words with the same number", same_number, ["word 'fair': it has the number"], set()),
    Damage(
        "words that are none",
        both(inserted("words", id_=7, n=1), inserted("words", id_=None)),
        ["word 7: it is not a text", "word None: it is not a text"],
        set(),
    ),
    Damage(
        "wrong trigrams",
        on("words", "chairs", grams=["xyz"]),
        ["word 'chairs': its trigrams are wrong"],
        set(),
    ),
    # Derived fields
    Damage(
        "unprotected event",
        on("events", 6, locked=False),
        ["event 6: locked is False, but it has a password"],
        set(),
    ),
    Damage(
        "protected event",
        on("events", 4, locked=True),
        ["event 4: locked is True, but it has no password"],
        set(),
    ),
    Damage(
        "no flag", on("events", 4, locked=...), ["event 4: locked is None, but it has no password"], set()
    ),
    Damage(
        "other prices",
        on("events", 5, cost__details__values=["7"]),
        ["event 5: the details of its cost do not match the text '$15'"],
        {"events 5"},
    ),
    Damage(
        "no cost",
        on("events", 9, cost=...),
        ["event 9: the details of its cost do not match the text ''"],
        {"events 9"},
    ),
    Damage(
        "point elsewhere",
        on("venues", 1, point={"type": "Point", "coordinates": [0.0, 0.0]}),
        ["venue 1: its coordinates do not agree: point"],
        set(),
    ),
    Damage(
        "point without coordinates",
        on("venues", 2, point={"type": "Point", "coordinates": [0.0, 0.0]}),
        ["venue 2: its coordinates do not agree: point"],
        set(),
    ),
    Damage(
        "half a position",
        on("venues", 1, geo_lat=None),
        ["venue 1: its coordinates do not agree: geo_lat"],
        V1,
    ),
    Damage(
        "coordinates that are none",
        on("venues", 1, geo_lat=float("inf"), geo_lng="east"),
        ["venue 1: its coordinates do not agree: geo_lat, geo_lng"],
        V1,
    ),
    # Fields
    Damage(
        "several fields at once",
        on("venues", 1, phone=123, events=...),
        ["venue 1: phone is 123, not a text", "venue 1: events is missing"],
        V1,
    ),
    Damage(
        "image of numbers",
        on("venues", 1, image={"id": None, "url": 7}),
        ["venue 1: image is {'id': None, 'url': 7}, not an image"],
        V1,
    ),
    Damage(
        "version of another type", on("events", 5, version=1.0), ["event 5: version is 1.0"], {"events 5"}
    ),
    Damage(
        "slug with other letters", on("events", 7, slug="Old News!"), ["event 7: slug is 'Old News!'"], E7
    ),
    Damage(
        "modified in the future", on("tags", 7, modified_utc=datetime(2090, 1, 1)), ["tag 7: modified"], set()
    ),
    Damage("flag of another type", on("events", 4, featured=1), ["event 4: featured is 1, not true or"], E4),
    Damage("text of another type", on("venues", 1, phone=123), ["venue 1: phone is 123, not a text"], V1),
    Damage(
        "cost of another type",
        on("events", 5, cost="$15"),
        ["event 5: the details of its cost"],
        {"events 5"},
    ),
    Damage("key of an import", on("events", 7, import_key="x"), ["event 7: import_key is 'x'"], set()),
    Damage("no version", on("events", 4, version=...), ["event 4: version is missing"], E4),
    Damage("no version of a venue", on("venues", 1, version=...), ["venue 1: version is missing"], set()),
    Damage(
        "lower version",
        on("events", 4, version=1),
        ["event 4: its version 1 is lower than that of its last change, 3"],
        E4,
    ),
    Damage("no status", on("events", 4, status=...), ["event 4: status is missing"], E4),
    Damage(
        "status that is none",
        on("venues", 1, status=7),
        ["venue 1: status is 7, not a status"],
        V1,
    ),
    Damage(
        "no name",
        on("venues", 1, venue=...),
        ["venue 1: venue is missing"],
        V1,
    ),
    Damage(
        "no slug",
        on("organizers", 3, slug=None),
        ["organizer 3: slug is None, not a slug"],
        {"organizers 3", *E4, "events 6", "events 9"},
    ),
    Damage("no slug of an event", on("events", 5, slug=...), ["event 5: slug is missing"], {"events 5"}),
    Damage(
        "flag that is none",
        on("events", 5, featured="no"),
        ["event 5: featured is 'no', not true or false"],
        {"events 5"},
    ),
    Damage("no author", on("events", 4, author=...), ["event 4: author is missing"], E4),
    Damage(
        "publication date that is none",
        on("events", 4, date_utc="today"),
        ["event 4: date_utc is 'today', not a time"],
        E4,
    ),
    Damage(
        "image that is none",
        on("venues", 2, image="x.png"),
        ["venue 2: image is 'x.png', not an image"],
        {"venues 2", "events 5", "events 6"},
    ),
    # Slugs, the trash, parents
    Damage(
        "same slug",
        same_slug,
        ["event 11: slug 'fair' is also that of event 5", "index events.slug: it is missing"],
        {"events 11"},
    ),
    Damage(
        "trashed from the trash",
        on("events", 8, trashed_from="trash"),
        ["event 8: it is in the trash, but its slug is 'rubbish__trashed' and trashed_from is 'trash'"],
        set(),
    ),
    Damage(
        "trashed with a slug",
        on("events", 8, slug="rubbish"),
        ["event 8: it is in the trash, but its slug is 'rubbish'"],
        {"events 8"},
    ),
    Damage(
        "former status outside of the trash",
        on("events", 5, trashed_from="draft"),
        ["event 5: it is not in the trash, but trashed_from is 'draft'"],
        set(),
    ),
    Damage(
        "published too early",
        on("events", 11, status="publish"),
        ["event 11: it is published, but its publication date 2050-01-01"],
        {"events 11"},
    ),
    Damage(
        "parent event that does not exist",
        on("events", 5, post_parent=55),
        ["event 5: post_parent 55 is not another event"],
        {"events 5"},
    ),
    Damage(
        "part of itself",
        on("events", 5, post_parent=5),
        ["event 5: post_parent 5 is not another event"],
        {"events 5"},
    ),
    # Indexes, counters, meta
    Damage(
        "missing index", dropped("events", "by_modified"), ["index events.by_modified: it is missing"], set()
    ),
    Damage(
        "other index", other_index, ["index events.own: its keys are {'author': -1}, not {'author': 1"], set()
    ),
    Damage("index that is not unique", not_unique, ["index events.slug: it has another unique"], set()),
    Damage(
        "lower ID counter",
        on("counters", "post", n=2),
        ["counter post: the last ID is 2, but 12 is used"],
        set(),
    ),
    Damage(
        "ID counter of a wrong type",
        on("counters", "term", n="9"),
        ["counter term: the last ID is '9', but 7 is used"],
        set(),
    ),
    Damage(
        "ID counter with a fraction",
        on("counters", "term", n=7.0),
        ["counter term: the last ID is 7.0, but 7 is used"],
        set(),
    ),
    Damage(
        "no ID counter",
        removed("counters", "token"),
        ["counter token: the last ID is 0, but 1 is used"],
        set(),
    ),
    Damage(
        "no form", removed("meta", "form"), ["database: the number of its stored form is None, not 2"], set()
    ),
    Damage(
        "form of another type",
        on("meta", "form", number=2.0),
        ["database: the number of its stored form is 2.0, not 2"],
        set(),
    ),
    # Jobs, the log, deleted terms
    Damage(
        "abandoned job",
        inserted("fanout_jobs", id_="venue:1:x", at=LONG_AGO),
        ["fan-out job 'venue:1:x': it was left at 2001-01-01"],
        set(),
    ),
    Damage(
        "job of nothing",
        inserted("fanout_jobs", id_="planet:1:x", at=LONG_AGO),
        ["fan-out job 'planet:1:x': it belongs to no record"],
        set(),
    ),
    Damage(
        "job without a time",
        inserted("fanout_jobs", id_="tag:7:x"),
        ["fan-out job 'tag:7:x': it has no time"],
        set(),
    ),
    Damage(
        "removed term that exists",
        inserted("removed_terms", id_=7, kind="tags", at=datetime(2026, 1, 1)),
        ["removed term 7: it is remembered as deleted, but tag 7 exists"],
        set(),
    ),
    Damage(
        "idempotency key of nothing",
        inserted("idempotency_keys", id_="x", record=None),
        ["idempotency key 'x': it cannot be read"],
        set(),
    ),
    Damage(
        "undo of nothing",
        inserted("undo", id_="x", kind="planet", id=1),
        ["undo step 'x': it cannot be read"],
        set(),
    ),
    Damage(
        "job of the future",
        inserted("fanout_jobs", id_="tag:7:x", at=datetime(2090, 1, 1)),
        ["fan-out job 'tag:7:x': its time 2090-01-01 00:00:00 UTC is in the future"],
        set(),
    ),
    Damage(
        "lease for ever",
        inserted("meta", id_="recount", holder="x", until=datetime(2090, 1, 1)),
        ["lease 'recount': it is held until 2090-01-01"],
        set(),
    ),
    Damage(
        "lease without an end",
        inserted("meta", id_="recount", holder="x", until="never"),
        ["lease 'recount': its end is not a time"],
        set(),
    ),
    # Tokens and webhooks
    Damage(
        "expiry that is none",
        on("tokens", 1, last_used_utc="never"),
        ["token 1: last_used_utc is not valid"],
        set(),
    ),
    Damage(
        "webhook in no state",
        on("webhooks", 1, attempts="many", held_until=...),
        ["webhook 1: attempts is not valid", "webhook 1: held_until is missing"],
        set(),
    ),
]
