"""The collection of ready-made bodies, in which the limit finds lists with the conditions of Kalends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.facts import Facts

NAME = "bench_ready"
STATE = "bench_made"
"""The collection that notes what was loaded; it stays between runs, as the ready-made bodies do."""
FIELDS = ("hide_from_listings", "status", "start_utc", "end_utc", "locked")
LINKS = ("categories", "tags", "venue")
USED = {*FIELDS, *LINKS, "_id"}
OVERLAP = timedelta(minutes=1)
"""Events changed this long before are made again: times of changes may be rounded."""
TOLERANCE = 0.05
"""Bodies are kept if their size differs by less than this share from that of Kalends today."""


def make_ready(database: Any, facts: Facts) -> None:
    """Makes all bodies, or only those of events that were changed since an earlier run made them."""
    size, begun = facts.size_in_list(), datetime.now(UTC) - OVERLAP
    indexes = indexes_of(database)
    made = database[STATE].find_one({"_id": NAME})
    fits = made and made["indexes"] == repr(indexes) and abs(made["size"] / size - 1) < TOLERANCE
    changed = {"modified_utc": {"$gte": made["at"]}} if fits else {}
    if not fits:
        database[NAME].drop()
    steps = [{"$match": {"_id": {"$lt": facts.first + facts.number}} | changed}]
    steps += [{"$project": projection(made["size"] if fits else size)}]
    database["events"].aggregate([*steps, {"$merge": {"into": NAME, "whenMatched": "replace"}}])
    for name, keys in indexes.items():
        database[NAME].create_index(keys, name=name)
    state = {"size": made["size"] if fits else size, "indexes": repr(indexes), "at": begun}
    database[STATE].replace_one({"_id": NAME}, state, upsert=True)


def indexes_of(database: Any) -> dict[str, Any]:
    """The indexes of events on the fields that lists filter and sort by."""
    found = database["events"].index_information()
    return {
        name: found[name]["key"]
        for name in sorted(found)
        if name != "_id_" and {field.split(".")[0] for field, _ in found[name]["key"]} <= USED
    }


def projection(size: int) -> dict[str, Any]:
    """The fields that lists filter and sort by, and a body as large as an event in lists of Kalends."""
    kept = dict.fromkeys(FIELDS, 1) | {f"{name}._id": 1 for name in LINKS}
    begin, fill = '{"_id":', ',"x":"' + "x" * max(0, size - 40) + '"}'
    return kept | {"body": {"$concat": [begin, {"$toString": "$_id"}, fill]}}
