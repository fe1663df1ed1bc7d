"""The routes that every kind of record shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from handlers.answers import item_answer, list_answer, wanted_versions
from handlers.parameters import body_values, query_values
from handlers.ports import Ref, Store
from schemas.caller import Caller, Role
from schemas.errors import Forbidden, NotFound, Unauthenticated
from schemas.fields import LARGEST, Words
from schemas.kind import Input, Kind, View, load
from schemas.language import Text
from schemas.post import about

CALLER = "caller"
UPDATES = ("POST", "PUT", "PATCH")


@dataclass(frozen=True)
class Operation:
    """One entry of the route table, with all that its document says."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    summary: Text
    kind: Kind | None = None
    query: type[Input] | None = None
    body: type[Input] | None = None
    partial: bool = False
    status: int = 200
    problems: tuple[int, ...] = ()
    is_list: bool = False


class PasswordInput(Input):
    """The password of a protected event."""

    password = Words(200, metadata=about(Text("password of a protected event")))


def operations(kind: Kind, store: Store) -> list[Operation]:
    """The route table of one kind."""

    async def index(request: web.Request) -> web.Response:
        query = load(kind.query, query_values(request, kind.query), store.site)
        query["per_page"] = min(query["per_page"], store.site.max_per_page)
        page = await store.page(kind, query, request[CALLER])
        return list_answer(request, kind, page, query, View(store.site, request[CALLER]))

    async def create(request: web.Request) -> web.Response:
        caller = writer(request, kind)
        data = load(kind.schema, await body_values(request), store.site)
        record = await store.create(kind, data, caller)
        return item_answer(request, kind, record, View(store.site, caller), 201)

    async def read(request: web.Request) -> web.Response:
        caller: Caller = request[CALLER]
        password = sent_password(request, query_values(request, PasswordInput))
        record = await store.read(kind, addressed(request, kind), caller, password)
        return item_answer(request, kind, record, View(store.site, caller), full=True)

    def updating(schema: type[Input]) -> Handler:
        async def update(request: web.Request) -> web.Response:
            caller = writer(request, kind)
            data = load(schema, await body_values(request), store.site, partial=True)
            ref, password = addressed(request, kind), sent_password(request, data)
            record = await store.update(kind, ref, data, caller, password, wanted_versions(request))
            return item_answer(request, kind, record, View(store.site, caller))

        return update

    async def delete(request: web.Request) -> web.Response:
        caller = writer(request, kind)
        password = sent_password(request, query_values(request, PasswordInput))
        ref = addressed(request, kind)
        record = await store.delete(kind, ref, caller, password, wanted_versions(request))
        return item_answer(request, kind, record, View(store.site, caller))

    gone = (410,) if kind.is_post else ()
    hidden = (403, 410) if kind.is_post else ()
    writing = (401, 403, 412)
    password = PasswordInput if kind.name == "event" else None

    def item(path: str, schema: type[Input]) -> list[Operation]:
        conflict = () if kind.is_post else (409,)
        return [
            Operation(("GET",), path, read, Text("Read one record"), kind, password, None,
                      problems=(304, 400, 404, *hidden)),
            Operation(("DELETE",), path, delete, Text("Delete a record"), kind, password, None,
                      problems=(400, *writing, 404, *gone)),
            Operation(UPDATES, path, updating(schema), Text("Update a record"), kind, None, schema, True,
                      problems=(400, *writing, 404, 408, *conflict, 413, 415)),
        ]  # fmt: skip

    table = [
        Operation(("GET",), f"/{kind.plural}", index, Text("List records"), kind, kind.query, None,
                  problems=(400, 404), is_list=True),
        Operation(("POST",), f"/{kind.plural}", create, Text("Create a record"), kind, None, kind.schema,
                  status=201, problems=(400, 401, 403, 408, 413, 415)),
        *item(f"/{kind.plural}/{{id:[0-9]+}}", kind.schema),
    ]  # fmt: skip
    if kind.is_post:
        table += item(f"/{kind.plural}/by-slug/{{slug:[^/]+}}", kind.renaming)
    return table


def writer(request: web.Request, kind: Kind) -> Caller:
    """The caller, who must be one that may write records of this kind at all."""
    caller: Caller = request[CALLER]
    if caller.role is None:
        raise Unauthenticated
    if not caller.writes or (not kind.is_post and caller.role is Role.CONTRIBUTOR):
        raise Forbidden
    return caller


def addressed(request: web.Request, kind: Kind) -> Ref:
    """The record that the path names: an id, or a slug."""
    if digits := request.match_info.get("id"):
        if len(digits) > 19 or int(digits) > LARGEST:
            raise NotFound(kind=kind.name)
        return int(digits)
    slug = request.match_info["slug"]
    if any("\ud800" <= char <= "\udfff" for char in slug):
        raise NotFound(kind=kind.name)
    return slug.lower()


def sent_password(request: web.Request, values: dict[str, Any]) -> str | None:
    found = values.get("password") or request.headers.get("X-Event-Password")
    return found if isinstance(found, str) else None
