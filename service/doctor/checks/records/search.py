"""Checks the search fields of records against their texts and the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from schemas import KINDS
from schemas.kind import Document, Kind, texts
from schemas.values.text_normalization import fold_all, sort_key, tokens, trigrams
from service.doctor.findings import Finding, RecordCheck
from service.doctor.mending import mend
from service.doctor.scope import Inferred, Scope

MAX_CACHED_NUMBERS = 100_000


class Expected(NamedTuple):
    """The search text and the words that a record should have."""

    text: str
    words: set[str]


async def find(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    expected = [_expected(kind, record) for record in records]
    await _load_numbers(scope, set().union(*(one.words for one in expected)))
    found: list[Finding] = []
    for record, right in zip(records, expected, strict=True):
        numbers = {word: scope.numbers[word] for word in right.words if word in scope.numbers}
        if word := await _wrong_word(scope, kind, record, right, numbers):
            found.append(word)
        inferred = {word: scope.inferred[word].number for word in right.words & scope.inferred.keys()}
        if problems := _problems(kind, record, right, numbers | inferred):
            problem = f"its search fields are wrong: {', '.join(problems)}"
            repair = partial(_repair, scope, kind, record)
            found.append(
                Finding(f"{kind.name} {record['_id']}", problem, "search", record["_id"], repair=repair)
            )
    return found


def _expected(kind: Kind, record: Document) -> Expected:
    text = fold_all(texts(kind, record))
    return Expected(text, tokens(text))


def _problems(kind: Kind, record: Document, right: Expected, numbers: Mapping[str, int]) -> list[str]:
    """The names of the fields that are wrong."""
    known = [numbers.get(word) for word in right.words]
    is_listed = None not in known and record.get("tok") == sorted(filter(None, known))
    wrong = [] if is_listed else ["tok"]
    if record.get("text") != right.text:
        wrong.append("text")
    return wrong if record.get("sort") == sort_key(record[kind.name_field]) else [*wrong, "sort"]


async def _repair(scope: Scope, kind: Kind, record: Document) -> None:
    await mend(scope, kind, record, await scope.vocabulary().searchable(kind, record))
    scope.numbers.clear()


async def _load_numbers(scope: Scope, words: set[str]) -> None:
    """Cache the stored numbers of words; words without a valid number are left out."""
    if len(scope.numbers) > MAX_CACHED_NUMBERS:
        scope.numbers.clear()
    if missing := list(words - scope.numbers.keys()):
        rows = await scope.collection("words").find({"_id": {"$in": missing}}, {"n": 1}).to_list(None)
        scope.numbers |= {row["_id"]: row["n"] for row in rows if isinstance(row.get("n"), int)}


async def _wrong_word(
    scope: Scope, kind: Kind, record: Document, right: Expected, numbers: Mapping[str, int]
) -> Finding | None:
    """If all numbers of a record but one are those of its words, the other one may be the number that the
    remaining word had: running services have it in their caches, and other records are found by it."""
    stored, known = set(record.get("tok") or ()), {word: numbers.get(word) for word in right.words}
    words = [word for word in known if known[word] not in stored]
    left = stored - set(known.values())
    if len(words) != 1 or len(left) != 1 or record.get("text") != right.text:
        return None
    word, number = words[0], left.pop()
    inferred = Inferred(number, (kind.plural, record["_id"]))
    if scope.inferred.get(word, inferred) != inferred:
        return None
    if not await _had_number(scope, word, numbers.get(word), number):
        return None
    scope.inferred[word] = inferred
    stored_number = (
        "is missing in the vocabulary" if word not in numbers else f"has the number {numbers[word]}"
    )
    problem = f"it {stored_number}, but {kind.name} {record['_id']} and others have {number} for it"
    repair = partial(_restore, scope, word, number)
    return Finding(f"word {word!r}", problem, "number", record["_id"], repair=repair)


async def _had_number(scope: Scope, word: str, stored: int | None, number: int) -> bool:
    """Whether no other word has this number, and no record has the stored one for this word."""
    if not isinstance(number, int) or await scope.collection("words").find_one({"n": number}):
        return False
    if stored is None or await scope.collection("words").find_one({"n": stored, "_id": {"$ne": word}}):
        return True
    users = [await scope.collection(kind.plural).find_one({"tok": stored}, {"_id": 1}) for kind in KINDS]
    return not any(users)


async def _restore(scope: Scope, word: str, number: int) -> None:
    entry = {"n": number, "grams": trigrams(word)}
    await scope.database["words"].update_one({"_id": word}, {"$set": entry}, upsert=True)
    scope.numbers.clear()


SEARCH = RecordCheck(
    "search",
    "the search text, words or sort key of a record do not match its texts, or a word has lost its "
    "number: computed again, with the numbers that records have",
    find,
)
