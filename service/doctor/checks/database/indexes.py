"""Checks that every index is there as it is defined. Further indexes are the operator's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import pymongo
from pymongo.errors import OperationFailure

from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.scope import Scope
from service.mongo.indexes import INDEX_BUILD_SECONDS, INDEXES

OPTIONS = ("unique", "sparse", "partialFilterExpression", "expireAfterSeconds", "collation")
IGNORED = ("hidden", "prepareUnique")
"""Options that an index must not have: the server does not use or enforce it fully."""


async def find(scope: Scope) -> list[Finding]:
    return [
        Finding(
            f"index {name}.{model.document['name']}",
            problem,
            repair=partial(_create, scope, name, model),
        )
        for name, models in INDEXES.items()
        for model, problem in zip(models, await _problems(scope, name, models), strict=True)
        if problem
    ]


async def _problems(scope: Scope, name: str, models: list[Any]) -> list[str]:
    try:
        stored = {row["name"]: row async for row in scope.database[name].list_indexes()}
    except OperationFailure:  # there is no such collection
        stored = {}
    return [_problem(model.document, stored.get(model.document["name"])) for model in models]


def _problem(wanted: Any, stored: Any) -> str:
    if stored is None:
        return "it is missing"
    if list(stored["key"].items()) != list(wanted["key"].items()):
        return f"its keys are {dict(stored['key'])}, not {dict(wanted['key'])}"
    other = [name for name in OPTIONS if (stored.get(name) or False) != (wanted.get(name) or False)]
    if wanted.get("expireAfterSeconds") == 0 and "expireAfterSeconds" not in stored:
        other.append("expireAfterSeconds")
    other += [name for name in IGNORED if stored.get(name)]
    return f"it has another {' and '.join(other)}" if other else ""


async def _create(scope: Scope, name: str, model: Any) -> None:
    """Create an index anew. Indexes with the same keys and another name must be dropped, too."""
    collection = scope.database[name]
    with pymongo.timeout(INDEX_BUILD_SECONDS):
        await collection.create_index("_id")  # creates the collection if there is none
        async for stored in collection.list_indexes():
            is_same = list(stored["key"].items()) == list(model.document["key"].items())
            if stored["name"] == model.document["name"] or (is_same and stored["name"] != "_id_"):
                await collection.drop_index(stored["name"])
        await collection.create_indexes([model])


INDEX_DEFINITIONS = DatabaseCheck(
    "indexes", "an index is missing or differs from its definition: created again", find
)
