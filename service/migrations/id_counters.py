"""Raises the id counters to the highest ids in use: after a restore they may be behind."""

from __future__ import annotations

from schemas import KINDS
from service.mongo.client import Database

SPACES = {kind.id_space: [one.plural for one in KINDS if one.id_space == kind.id_space] for kind in KINDS} | {
    "token": ["tokens"],
    "webhook": ["webhooks"],
}
WORD = "word"
NUMBER = {"$type": ["int", "long"]}


async def raise_id_counters(database: Database) -> None:
    for space in SPACES:
        await raise_id_counter(database, space)
    if not await database["counters"].find_one({"_id": WORD}):  # there is no index for it
        await raise_id_counter(database, WORD)


async def raise_id_counter(database: Database, space: str) -> None:
    highest = await highest_id(database, space)
    await database["counters"].update_one({"_id": space}, {"$max": {"n": highest}}, upsert=True)


async def highest_id(database: Database, space: str) -> int:
    """The highest id in use of an id sequence, 0 if there is none."""
    field = "n" if space == WORD else "_id"
    names = ["words"] if space == WORD else SPACES[space]
    query, shown, last = {field: NUMBER}, {field: 1}, [(field, -1)]
    newest = [await database[name].find_one(query, shown, sort=last) for name in names]
    return max((int(found[field]) for found in newest if found), default=0)
