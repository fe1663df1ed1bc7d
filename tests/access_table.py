"""Who may do what: worked out from the description of the roles, without a look at the service's code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from service.store import Store
from tests.conftest import Api, skip_changes

CALLERS = ("public", "viewer", "contributor", "author", "editor", "admin")
STATUSES = ("publish", "draft", "pending", "private", "future", "trash")
POSTS = {"event": "events", "venue": "venues", "organizer": "organizers"}
TERMS = {"category": "categories", "tag": "tags"}
NAMES = {"event": "title", "venue": "venue", "organizer": "organizer"}
PASSWORD = "open-sesame-9d1c"
OK = (200, "")
T = TypeVar("T")
Answer = tuple[int, str]


@dataclass(frozen=True)
class Made:
    """A record that a test has made, and what decides who may do what with it."""

    kind: str
    number: int
    status: str
    owner: str
    locked: bool = False
    id: int = 0
    slug: str = ""
    texts: dict[str, str] = field(default_factory=dict, hash=False, compare=False)

    @property
    def plural(self) -> str:
        return POSTS[self.kind]

    @property
    def paths(self) -> tuple[str, str]:
        return f"/{self.plural}/{self.id}", f"/{self.plural}/by-slug/{self.slug}"


Records = list[Made]


def sees(caller: str, record: Made) -> bool:
    """Viewers, editors and admins see all; authors and contributors what is published and their own."""
    if record.status == "publish" or caller in ("viewer", "editor", "admin"):
        return True
    return caller in ("author", "contributor") and record.owner == caller


def opens(caller: str, record: Made) -> bool:
    """Only editors and admins need no password."""
    return not record.locked or caller in ("editor", "admin")


def lists(caller: str, record: Made) -> bool:
    return record.status != "trash" and sees(caller, record)


def finds(caller: str, record: Made) -> bool:
    """Protected events are never found by search."""
    return lists(caller, record) and not record.locked


def read(caller: str, record: Made) -> Answer:
    if record.status == "trash":
        return 410, f"{record.kind}-is-in-trash"
    if not sees(caller, record):
        return 403, f"{record.kind}-not-accessible"
    return OK if opens(caller, record) else (403, "event-password-protected")


def role_writes(caller: str, *, terms: bool = False) -> Answer:
    if caller == "public":
        return 401, "rest_forbidden"
    if caller == "viewer" or (terms and caller == "contributor"):
        return 403, "rest_forbidden"
    return OK


def update(caller: str, record: Made) -> Answer:
    if (refused := role_writes(caller)) != OK:
        return refused
    if caller in ("author", "contributor") and record.owner != caller:
        return 403, "rest_forbidden"
    if caller == "contributor" and record.status in ("publish", "future"):
        return 403, "rest_forbidden"
    return OK if opens(caller, record) else (403, "event-password-protected")


def delete(caller: str, record: Made) -> Answer:
    answer = update(caller, record)
    if record.status == "trash" and answer[1] != "rest_forbidden":
        return 410, f"{record.kind}-is-in-trash"
    return answer


def listed(caller: str, records: Iterable[Made], statuses: Iterable[str] = ()) -> list[int] | Answer:
    """The ids of a list, in order of id. Who sees only what is published may not ask for more."""
    asked = set(statuses)
    if caller == "public" and asked - {"publish"}:
        return 400, "rest_invalid_param"
    wanted = asked or set(STATUSES) - {"trash"}
    return sorted(record.id for record in records if record.status in wanted and sees(caller, record))


def linked(caller: str, event: Made, ids: list[int]) -> list[int] | Answer:
    """What `event=` finds: an event that is not seen is unknown, and one that is locked shows no links."""
    if not lists(caller, event):
        return 400, "rest_invalid_param"
    return ids if opens(caller, event) else []


# Making them


def code_of(body: Any) -> str:
    return body.get("code", "") if isinstance(body, dict) else ""


async def together(work: Iterable[Awaitable[T]], many: int = 4) -> list[T]:
    """The results of all, a few at a time: the counters of what all link to are fought for otherwise."""
    turn = asyncio.Semaphore(many)

    async def one(waiting: Awaitable[T]) -> T:
        async with turn:
            return await waiting

    return list(await asyncio.gather(*map(one, work)))


async def make(admin: Api, ids: dict[str, int], record: Made, **more: Any) -> Made:
    """Makes a record as described: with its owner, status and password."""
    body: dict[str, Any] = {"author": ids[record.owner], **record.texts, **more}
    body["status"] = "publish" if record.status == "trash" else record.status
    if record.status == "future":
        body["date"] = "2090-01-01 00:00:00"
    if record.kind == "event":
        day = f"2027-06-{record.number % 28 + 1:02}"
        body |= {"start_date": f"{day} 10:00:00", "end_date": f"{day} 12:00:00"}
        body |= {"password": PASSWORD} if record.locked else {}
    shown = await admin.made(record.plural, **body)
    if record.status == "trash":
        status, shown = await admin.delete(f"/{record.plural}/{shown['id']}")
        assert status == 200, shown
    assert (shown["status"], shown["author"]) == (record.status, ids[record.owner])
    return Made(
        record.kind, record.number, record.status, record.owner, record.locked, shown["id"], shown["slug"],
        record.texts,
    )  # fmt: skip


async def role_ids(store: Store) -> dict[str, int]:
    return {token["role"]: token["_id"] for token in await store.tokens.list()}


_kept: dict[str, tuple[dict[str, list[Any]], Any]] = {}


async def once(store: Store, name: str, build: Callable[[], Awaitable[Any]]) -> Any:
    """What `build` makes. The second test of a process that asks finds the database as the first one did."""
    database = store.database
    if name not in _kept:
        built = await build()
        await store.log.catch_up()  # the copies include the counters
        names = set(await database.list_collection_names()) - {"tokens", "meta", "changes"}
        _kept[name] = {name: await database[name].find().to_list(None) for name in names}, built
        return built
    documents, built = _kept[name]
    for collection, rows in documents.items():
        await database[collection].delete_many({})
        if rows:
            await database[collection].insert_many(rows)
    await skip_changes(store)
    return built
