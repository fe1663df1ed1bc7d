"""Raises the id counters to the highest ids in use: after a restore they may be behind."""

from __future__ import annotations

from schemas import KINDS
from service.store.mongo.client import Database

SPACES = {kind.id_space: [one.plural for one in KINDS if one.id_space == kind.id_space] for kind in KINDS} | {
    "token": ["tokens"],
    "webhook": ["webhooks"],
}


async def raise_id_counters(database: Database) -> None:
    for space, names in SPACES.items():
        newest = [await database[name].find_one({}, {"_id": 1}, sort=[("_id", -1)]) for name in names]
        await _raise(database, space, max((found["_id"] for found in newest if found), default=0))
    if not await database["counters"].find_one({"_id": "word"}):
        last = await database["words"].find_one({}, {"n": 1}, sort=[("n", -1)])
        await _raise(database, "word", last["n"] if last else 0)


async def _raise(database: Database, space: str, highest: int) -> None:
    await database["counters"].update_one({"_id": space}, {"$max": {"n": highest}}, upsert=True)
