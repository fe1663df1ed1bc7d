"""Search: records store the ids of their words, and a vocabulary with trigrams finds words by substring."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from schemas.errors import Unavailable
from schemas.kind import Kind, texts
from schemas.values.text_normalization import (
    MAX_TOKEN_CHARS,
    TOKEN,
    fold_all,
    search_terms,
    sort_key,
    tokens,
    trigrams,
)
from service.mongo.bulk_writes import insert_missing
from service.mongo.client import Database
from service.mongo.coalescing import Batcher
from service.mongo.id_blocks import Ids

MAX_EXPANDED_WORDS = 2000
"""A substring of more words than this is so common that scanning the list in order is fastest."""
MAX_CACHED_WORDS = 50_000
"""Words whose ids are cached; the oldest are dropped. With an LRU cache creations are 5 % slower."""
MAX_CHARS_ON_LOOP = 10_000
"""Texts with more characters than this are normalized in a thread."""


def _fold_each(records: Iterable[list[tuple[str, str]]]) -> list[tuple[str, set[str]]]:
    """The normalized text of each record, and its words."""
    return [(text, tokens(text)) for text in map(fold_all, records)]


class Vocabulary:
    """The search vocabulary: every distinct word with its id. Words are never removed."""

    def __init__(self, database: Database, ids: Ids) -> None:
        self._words = database["words"]
        self._ids = ids
        self._known: dict[str, int] = {}
        self.batcher = Batcher[frozenset[str], Mapping[str, int]](self._learn)

    async def searchable(self, kind: Kind, record: Mapping[str, Any]) -> dict[str, Any]:
        """The search and sort fields of a record: normalized text, word ids and sort key."""
        return (await self.all_searchable(kind, [record]))[0]

    async def all_searchable(self, kind: Kind, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The search and sort fields of each record, with one look-up in the vocabulary for all."""
        sent = [list(texts(kind, record)) for record in records]
        is_long = sum(len(text) for one in sent for _, text in one) > MAX_CHARS_ON_LOOP
        folded = await asyncio.to_thread(_fold_each, sent) if is_long else _fold_each(sent)
        ids = await self.word_ids(set().union(*(words for _, words in folded)))
        return [
            {
                "text": text,
                "tok": sorted(map(ids.__getitem__, words)),
                "sort": sort_key(record[kind.name_field]),
            }
            for record, (text, words) in zip(records, folded, strict=True)
        ]

    async def word_ids(self, wanted: set[str]) -> Mapping[str, int]:
        """The ids of these words; the result may contain others, too."""
        missing = frozenset(word for word in wanted if word not in self._known)
        found = {word: self._known[word] for word in wanted - missing}
        return {**found, **(await self.batcher.load(missing) or {})} if missing else found

    async def _learn(self, many_words: Sequence[frozenset[str]]) -> dict[frozenset[str], Mapping[str, int]]:
        """Find or create the ids of words that are not cached, for all concurrent callers."""
        words, known = set().union(*many_words), self._known
        found = {word: known[word] for word in words if word in known}
        # Most of them are stored already: this process is younger than the vocabulary.
        found |= await self._stored([word for word in words if word not in found])
        found |= await self._added([word for word in words if word not in found])
        known.update(found)
        for word in list(islice(known, max(0, len(known) - MAX_CACHED_WORDS))):
            del known[word]
        return {each: {word: found[word] for word in each} for each in many_words}

    def forget(self) -> None:
        """Drop the ids of all words: a restore may have changed them. A look-up under way still uses the old
        ones, but does not keep them."""
        self._known = {}

    async def _stored(self, words: list[str]) -> dict[str, int]:
        rows = self._words.find({"_id": {"$in": words}}, {"n": 1}) if words else None
        return {row["_id"]: row["n"] for row in await rows.to_list(None)} if rows else {}

    async def _added(self, words: list[str]) -> dict[str, int]:
        """Insert words; those that exist already keep their ids."""
        if not words:
            return {}
        numbers = await self._ids.many("word", len(words))
        made = dict(zip(words, numbers, strict=True))
        rows = [{"_id": word, "n": number, "grams": trigrams(word)} for word, number in made.items()]
        if there := await insert_missing(self._words, rows):
            found = await self._stored(there)
            if len(found) < len(there):
                raise Unavailable  # a new primary does not have them yet; our numbers were never inserted
            made |= found
        return made

    async def condition(self, search: str) -> list[dict[str, Any]]:
        """Conditions that match exactly the records that contain every part of the search text."""
        conditions: list[dict[str, Any]] = []
        for piece in search_terms(search):
            inside = TOKEN.findall(piece)
            named = [
                await self._containing(word, at > 0, at < len(inside) - 1) for at, word in enumerate(inside)
            ]
            conditions += [{"tok": {"$in": numbers}} for numbers in named if numbers is not None]
            if len(inside) > 1 or len(piece) > MAX_TOKEN_CHARS or None in named:
                conditions.append({"text": {"$regex": re.escape(piece)}})
        return conditions

    async def _containing(self, part: str, begins: bool, ends: bool) -> list[int] | None:
        """The ids of the words that contain a substring; None if there are too many."""
        ends = ends and len(part) <= MAX_TOKEN_CHARS
        part = part[:MAX_TOKEN_CHARS]
        pattern = ("^" if begins else "") + re.escape(part) + ("$" if ends else "")
        query: dict[str, Any] = {"_id": {"$regex": pattern}}
        if not begins and len(part) >= 3:
            query["grams"] = {"$all": trigrams(part)}
        rows = await self._words.find(query, {"n": 1}).limit(MAX_EXPANDED_WORDS + 1).to_list(None)
        return [row["n"] for row in rows] if len(rows) <= MAX_EXPANDED_WORDS else None
