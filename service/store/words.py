"""Search: events keep the ids of their words, and a vocabulary tells which words contain a text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import BulkWriteError

from schemas.folding import LONGEST, TOKEN, fold, pieces, tokens, without_markup
from schemas.kind import Kind, texts
from service.store.client import Database

MOST = 2000
"""A text that more words than this contain is so common that reading in order finds it soonest."""
CACHED = 50_000
LONG = 10_000
"""Characters from which folding a text is left to a thread."""


def fold_all(sent: list[tuple[str, str]]) -> str:
    """All texts of a record, folded, one below the other."""
    marked_up = ("description", "excerpt")
    return "\n".join(fold(without_markup(text) if name in marked_up else text) for name, text in sent)


def grams(word: str) -> list[str]:
    """The three-letter parts of a word."""
    return sorted({word[at : at + 3] for at in range(max(len(word) - 2, 0))})


class Words:
    """The vocabulary: every distinct word with a number of its own. Words are never removed."""

    def __init__(self, database: Database) -> None:
        self._words = database["words"]
        self._counters = database["counters"]
        self._known: dict[str, int] = {}

    async def searchable(self, kind: Kind, record: Mapping[str, Any]) -> dict[str, Any]:
        """What a record is found and sorted by: its folded text, its words' numbers, its folded name."""
        sent = list(texts(kind, record))
        is_long = sum(len(text) for _, text in sent) > LONG
        folded = await asyncio.to_thread(fold_all, sent) if is_long else fold_all(sent)
        numbers = await self.numbers(tokens(folded))
        return {"text": folded, "tok": sorted(numbers.values()), "sort": fold(record[kind.title])[:100]}

    async def numbers(self, wanted: set[str]) -> dict[str, int]:
        found = {word: self._known[word] for word in wanted if word in self._known}
        missing = [word for word in wanted if word not in found]
        if missing:
            found |= await self._stored(missing)
            if new := [word for word in missing if word not in found]:
                await self._add(new)
                found |= await self._stored(new)
        return found

    async def _stored(self, words: list[str]) -> dict[str, int]:
        rows = self._words.find({"_id": {"$in": words}}, {"n": 1})
        found = {row["_id"]: row["n"] async for row in rows}
        if len(self._known) > CACHED:
            self._known.clear()
        self._known |= found
        return found

    async def _add(self, words: list[str]) -> None:
        counter = await self._counters.find_one_and_update(
            {"_id": "word"}, {"$inc": {"n": len(words)}}, upsert=True, return_document=ReturnDocument.AFTER
        )
        first = counter["n"] - len(words) + 1
        rows = [{"_id": word, "n": first + at, "grams": grams(word)} for at, word in enumerate(words)]
        try:
            await self._words.insert_many(rows, ordered=False)
        except BulkWriteError as error:
            if any(one["code"] != 11000 for one in error.details["writeErrors"]):
                raise

    async def condition(self, search: str) -> list[dict[str, Any]]:
        """Conditions that hold for exactly the records that contain every piece of the search."""
        conditions: list[dict[str, Any]] = []
        for piece in pieces(search):
            inside = TOKEN.findall(piece)
            named = [
                await self._containing(word, at > 0, at < len(inside) - 1) for at, word in enumerate(inside)
            ]
            conditions += [{"tok": {"$in": numbers}} for numbers in named if numbers is not None]
            if len(inside) > 1 or len(piece) > LONGEST or None in named:
                conditions.append({"text": {"$regex": re.escape(piece)}})
        return conditions

    async def _containing(self, part: str, begins: bool, ends: bool) -> list[int] | None:
        """The numbers of the words that contain the part; None where they are too many to name."""
        ends = ends and len(part) <= LONGEST
        part = part[:LONGEST]
        pattern = ("^" if begins else "") + re.escape(part) + ("$" if ends else "")
        query: dict[str, Any] = {"_id": {"$regex": pattern}}
        if not begins and len(part) >= 3:
            query["grams"] = {"$all": grams(part)}
        rows = await self._words.find(query, {"n": 1}).limit(MOST + 1).to_list(None)
        return [row["n"] for row in rows] if len(rows) <= MOST else None
