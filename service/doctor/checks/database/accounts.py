"""Checks tokens and webhooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from schemas.caller import Role
from schemas.kind import Document
from schemas.values.dates import EPOCH
from service.doctor.findings import DatabaseCheck, Finding
from service.doctor.mending import as_read
from service.doctor.scope import Scope
from service.doctor.values import is_number, is_past, is_text, is_time, or_none
from service.store.lists.change_pages import TOKEN
from service.tokens import utc_now

NEEDED: Any = object()
"""Stands for a value that cannot be restored."""


class Rule(NamedTuple):
    """The values that a field may have, and one that is safe if it has none of them."""

    is_valid: Callable[[Any], bool]
    safe: Callable[[], Any]


def safe(value: Any) -> Callable[[], Any]:
    return lambda: value


def is_role(value: Any) -> bool:
    return value in [role.value for role in Role]


def matches(pattern: str | re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


TOKENS: Mapping[str, Rule] = {
    "_id": Rule(is_number, safe(NEEDED)),
    "digest": Rule(matches(r"[0-9a-f]{64}"), safe(NEEDED)),
    "role": Rule(is_role, safe(NEEDED)),
    "name": Rule(is_text, safe("unnamed")),
    "created_utc": Rule(is_time, utc_now),
    "expires_utc": Rule(or_none(is_time), utc_now),
    "last_used_utc": Rule(or_none(is_time), safe(None)),
}
WEBHOOKS: Mapping[str, Rule] = {
    "_id": Rule(is_number, safe(NEEDED)),
    "url": Rule(matches(r"https?://\S+"), safe(NEEDED)),
    "secret": Rule(matches(r"whsec_[A-Za-z0-9+/=]+"), safe(NEEDED)),
    "query": Rule(lambda value: isinstance(value, str), safe(NEEDED)),
    "role": Rule(or_none(is_role), safe(None)),
    "since": Rule(matches(TOKEN), safe(NEEDED)),
    "state": Rule(lambda value: value in ("active", "paused"), safe("paused")),
    "attempts": Rule(is_number, safe(0)),
    "problem": Rule(lambda value: isinstance(value, str), safe("")),
    "failing_since": Rule(or_none(is_time), safe(None)),
    "is_expired": Rule(is_flag, safe(False)),
    "created_utc": Rule(is_time, utc_now),
    "delivered_utc": Rule(or_none(is_time), safe(None)),
    "next_attempt": Rule(is_past, safe(EPOCH)),
    "held_until": Rule(is_past, safe(EPOCH)),
    "holder": Rule(or_none(lambda value: isinstance(value, str)), safe(None)),
}


async def _find(
    scope: Scope, collection: str, noun: str, rules: Mapping[str, Rule], advice: str
) -> list[Finding]:
    found = []
    async for row in scope.collection(collection).find():
        wrong = [name for name, rule in rules.items() if not rule.is_valid(row.get(name))]
        for name in wrong:
            value = rules[name].safe()
            change = {name: value} if value is not NEEDED else {}
            repair = partial(_set, scope, collection, row, change) if change else None
            problem = f"{name} is {'missing' if name not in row else 'not valid'}"
            told = advice.format(row["_id"])
            found.append(Finding(f"{noun} {row['_id']}", problem, name, repair=repair, advice=told))
    return found


async def _set(scope: Scope, collection: str, row: Document, change: Document) -> None:
    query = {name: as_read(row, name) for name in ("_id", *change)}
    await scope.database[collection].update_one(query, {"$set": change})


async def find_tokens(scope: Scope) -> list[Finding]:
    """A token without a valid digest or role cannot be used by anybody."""
    advice = "run `kalends token revoke {}`, and create another one"
    found = await _find(scope, "tokens", "token", TOKENS, advice)
    groups = scope.collection("tokens").aggregate(
        [
            {"$match": {"digest": {"$type": "string"}}},
            {"$sort": {"_id": 1}},
            {"$group": {"_id": "$digest", "ids": {"$push": "$_id"}}},
            {"$match": {"ids.1": {"$exists": True}}},
        ]
    )
    async for group in groups:
        first, *others = group["ids"]
        for id in others:
            remove = partial(scope.store.tokens.revoke, id)
            found.append(Finding(f"token {id}", f"it is the same as token {first}", "twin", repair=remove))
    return found


async def find_webhooks(scope: Scope) -> list[Finding]:
    return await _find(
        scope, "webhooks", "webhook", WEBHOOKS, "run `kalends webhook remove {}`, and add it again"
    )


TOKEN_DOCUMENTS = DatabaseCheck(
    "tokens",
    "a field of a token is not valid: set to a safe value; a role or digest only reported",
    find_tokens,
)
WEBHOOK_DOCUMENTS = DatabaseCheck(
    "webhooks",
    "the state of a webhook is not valid: set to a safe value; its address, secret, query or position only "
    "reported",
    find_webhooks,
)
