"""Search: events keep the ids of their words, and a vocabulary tells which words contain a text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schemas.folding import LONGEST, TOKEN, fold, pieces, sort_key, tokens, without_markup
from schemas.kind import Kind, texts
from service.store.batches import Batch
from service.store.client import Database
from service.store.ids import Ids
from service.store.inserts import insert_missing

MOST = 2000
"""A text that more words than this contain is so common that reading in order finds it soonest."""
CACHED = 50_000
FEW = 10
"""Unknown words of one record that are stored without asking for them first."""
LONG = 10_000
"""Characters from which folding a text is left to a thread."""


def fold_all(sent: list[tuple[str, str]]) -> str:
    """All texts of a record, folded, one below the other."""
    marked_up = ("description", "excerpt")
    return "\n".join(fold(without_markup(text) if name in marked_up else text) for name, text in sent)


def _fold_each(records: Iterable[list[tuple[str, str]]]) -> list[tuple[str, set[str]]]:
    """The folded text of each record, and its words."""
    return [(text, tokens(text)) for text in map(fold_all, records)]


def grams(word: str) -> list[str]:
    """The three-letter parts of a word."""
    return sorted({word[at : at + 3] for at in range(max(len(word) - 2, 0))})


class Words:
    """The vocabulary: every distinct word with a number of its own. Words are never removed."""

    def __init__(self, database: Database, ids: Ids) -> None:
        self._words = database["words"]
        self._ids = ids
        self._known: dict[str, int] = {}
        self._batch = Batch[frozenset[str], Mapping[str, int]](self._learn)

    async def searchable(self, kind: Kind, record: Mapping[str, Any]) -> dict[str, Any]:
        """What a record is found and sorted by: its folded text, its words' numbers, its folded name."""
        return (await self.all_searchable(kind, [record]))[0]

    async def all_searchable(self, kind: Kind, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What each record is found and sorted by, with one look at the vocabulary for all of them."""
        sent = [list(texts(kind, record)) for record in records]
        is_long = sum(len(text) for one in sent for _, text in one) > LONG
        folded = await asyncio.to_thread(_fold_each, sent) if is_long else _fold_each(sent)
        numbers = await self.numbers(set().union(*(words for _, words in folded)))
        return [
            {
                "text": text,
                "tok": sorted(map(numbers.__getitem__, words)),
                "sort": sort_key(record[kind.title]),
            }
            for record, (text, words) in zip(records, folded, strict=True)
        ]

    async def numbers(self, wanted: set[str]) -> Mapping[str, int]:
        """The numbers of these words, and perhaps of others."""
        missing = frozenset(wanted.difference(self._known))
        if not missing:
            return self._known
        found = {word: self._known[word] for word in wanted - missing}
        return {**found, **(await self._batch.ask(missing) or {})}

    async def _learn(self, asked: Sequence[frozenset[str]]) -> dict[frozenset[str], Mapping[str, int]]:
        """The numbers of words that this process does not know, for all who wait for some."""
        words = set().union(*asked)
        found = {word: self._known[word] for word in words if word in self._known}
        if any(len(each) > FEW for each in asked):
            # A cold start meets stored words; later an unknown one is most often new, and storing it tells.
            found |= await self._stored([word for word in words if word not in found])
        found |= await self._added([word for word in words if word not in found])
        if len(self._known) > CACHED:
            self._known.clear()
        self._known |= found
        return {each: {word: found[word] for word in each} for each in asked}

    async def _stored(self, words: list[str]) -> dict[str, int]:
        rows = await self._words.find({"_id": {"$in": words}}, {"n": 1}).to_list(None)
        return {row["_id"]: row["n"] for row in rows}

    async def _added(self, words: list[str]) -> dict[str, int]:
        """Stores words; those that were there already keep the numbers that they have."""
        if not words:
            return {}
        numbers = await self._ids.many("word", len(words))
        made = dict(zip(words, numbers, strict=True))
        rows = [{"_id": word, "n": number, "grams": grams(word)} for word, number in made.items()]
        if there := await insert_missing(self._words, rows):
            made |= await self._stored(there)
        return made

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
