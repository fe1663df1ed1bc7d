"""Checks the search vocabulary: trigrams, and numbers that only one word has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from schemas import KINDS
from schemas.kind import Document, texts
from schemas.values.text_normalization import fold_all, tokens, trigrams
from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.mending import mend
from service.doctor.scope import Scope
from service.mongo.client import batches_by_id

BATCH = 5000


async def find_trigrams(scope: Scope) -> list[Finding]:
    no_words = scope.collection("words").find({"_id": {"$not": {"$type": "string"}}}, {"_id": 1})
    found = [
        Finding(
            f"word {row['_id']!r:.60}",
            "it is not a text",
            repair=partial(scope.database["words"].delete_one, {"_id": {"$eq": row["_id"]}}),
        )
        async for row in no_words
    ]
    return found + [
        Finding(
            f"word {row['_id']!r}",
            "its trigrams are wrong",
            "grams",
            repair=partial(_set_trigrams, scope, row["_id"]),
        )
        async for row in _words(scope)
        if row.get("grams") != trigrams(row["_id"])
    ]


async def _words(scope: Scope) -> AsyncIterator[Document]:
    async for batch in batches_by_id(scope.collection("words"), {"$type": "string"}, BATCH):
        for row in batch:
            yield row


async def _set_trigrams(scope: Scope, word: str) -> None:
    await scope.database["words"].update_one({"_id": word}, {"$set": {"grams": trigrams(word)}})


async def find_numbers(scope: Scope) -> list[Finding]:
    """Words without a valid number, or with one that another word has; those that records tell are known."""
    groups = scope.collection("words").aggregate(
        [
            {"$match": {"_id": {"$type": "string"}}},
            {"$group": {"_id": "$n", "words": {"$push": "$_id"}, "times": {"$sum": 1}}},
            {"$match": {"$or": [{"times": {"$gt": 1}}, {"_id": {"$not": {"$type": "int"}}}]}},
        ],
        allowDiskUse=True,
    )
    found = []
    async for group in groups:
        number, words = group["_id"], sorted(set(group["words"]) - scope.inferred.keys())
        if isinstance(number, int) and not isinstance(number, bool):
            if len(words) < 2:
                continue
            keeps = await _owner(scope, words, number)
            words = [word for word in words if word != keeps]
        for word in words:
            problem = f"its number {number!r} is not a number, or another word has it, too"
            repair = partial(_renumber, scope, word, number)
            found.append(Finding(f"word {word!r}", problem, "number", repair=repair))
    return found


async def _owner(scope: Scope, words: list[str], number: int) -> str:
    """The word that keeps the number: one that a record with this number contains."""
    for kind in KINDS:
        if record := await scope.collection(kind.plural).find_one({"tok": number}):
            contained = tokens(fold_all(texts(kind, record)))
            return next((word for word in words if word in contained), words[0])
    return words[0]


async def _renumber(scope: Scope, word: str, number: object) -> None:
    """Give a word a new number, and the records that contain it, too."""
    new = await scope.store.ids.next("word")
    await scope.database["words"].update_one({"_id": word, "n": number}, {"$set": {"n": new}})
    for kind in KINDS:
        async for record in scope.collection(kind.plural).find({"tok": number}):
            await mend(scope, kind, record, await scope.vocabulary().searchable(kind, record))


TRIGRAMS = DatabaseCheck(
    "trigrams", "a word is not a text: removed; its trigrams are wrong: computed again", find_trigrams
)
NUMBERS = DatabaseCheck(
    "word numbers",
    "two search words have the same number, or a word has none: it gets a new one, and records with it are "
    "updated",
    find_numbers,
)
