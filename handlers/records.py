"""The handlers that all kinds of records share: list, create, read, update, delete."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler

from handlers.answers import item_answer, list_answer, wanted_versions
from handlers.parameters import body_values, language_of, query_pairs, query_values, values_of
from handlers.ports import Ref, Store
from handlers.replies import Answer, not_modified
from handlers.response_cache import (
    ByteCache,
    FragmentCache,
    PageCache,
    RecordCache,
    expires,
    record_answer,
    record_tag,
)
from schemas.caller import Caller, Role
from schemas.errors import Forbidden, NotFound, Problems, Unauthenticated
from schemas.fields import LARGEST
from schemas.kind import Document, Input, Kind, ReadInput, View, load, load_valid
from schemas.language import Text, translate
from schemas.post import about
from schemas.selection import Selection, select
from schemas.site import Site
from schemas.text_fields import Words
from schemas.warnings import warnings_of

CALLER = "caller"
LONG = 20_000
"""Size of a body, in characters, above which validation runs in a thread."""


class PasswordInput(Input):
    """The password of a protected event."""

    password = Words(200, metadata=about(Text("password of a protected event")))


class EventReadInput(PasswordInput, ReadInput):
    """Parameters of a GET of one event."""


class Caches(NamedTuple):
    """The response caches, shared by all kinds."""

    pages: PageCache
    fragments: FragmentCache
    records: RecordCache


def caches(store: Store, responses: ByteCache, fragments: ByteCache) -> Caches:
    return Caches(PageCache(store, responses), FragmentCache(store, fragments), RecordCache(responses))


class RecordHandlers:
    """The handlers of one kind. Each parses the request, calls the store and builds the response."""

    def __init__(self, kind: Kind, store: Store, site: Site, caches: Caches) -> None:
        self.kind = kind
        self.store = store
        self.site = site
        self.pages, self.fragments, self.cached_records = caches

    async def index(self, request: web.Request) -> web.StreamResponse:
        view = View(self.site, request[CALLER])

        async def make() -> tuple[Answer, datetime]:
            pairs = query_pairs(request)
            query, problems = load_valid(self.kind.query, values_of(pairs, self.kind.query), view.site)
            selection = self._selection(query, problems)
            page = await self.store.page(self.kind, query, view.caller, problems)
            items = await self.fragments.listed(self.kind, page.heads, replace(view, selection=selection))
            answer = list_answer(pairs, self.kind, page.total, items, query, view)
            return answer, expires(query, pairs, view.site)

        asked = (self.site.namespace, self.kind.name, request.rel_url.raw_query_string, view.caller.sight)
        return (await self.pages.answer(asked, make)).to(request)

    async def create(self, request: web.Request) -> web.StreamResponse:
        caller = writer(request, self.kind)
        sent = await body_values(request)
        data, problems = await self._loaded(self.kind.schema, sent)
        record = await self.store.create(self.kind, data, caller, problems)
        return self._written(request, record, sent, 201)

    async def read(self, request: web.Request) -> web.StreamResponse:
        sent = query_values(request, EventReadInput)
        view = View(self.site, request[CALLER], self._selected(sent))
        kind, ref = self.kind, addressed(request, self.kind)
        kept = self.cached_records.take(kind, ref, view)
        # On a cache miss the record is read anyway: the last known position will do, without a round trip.
        position = await self.store.feed.catch_up() if kept else self.store.feed.last
        if kept and kept.holds(position):
            return kept.answer.to(request)
        password = sent_password(request, sent)
        if kept or "If-None-Match" in request.headers:
            head = await self.store.head(kind, ref, view.caller, password)
            if unchanged := not_modified(request, record_tag(kind, head, view)):
                return unchanged
            if kept and kept.shows(kind, head):
                return self.cached_records.keep(kind, ref, head, view, position, kept.answer).to(request)
        record = await self.store.read(kind, ref, view.caller, password)
        answer = record_answer(kind, record, view)
        self.cached_records.keep(kind, ref, record, view, position, answer)
        # Records read in one batch are all rendered before the first response is sent; Reply.write_eof says
        # why.
        await asyncio.sleep(0)
        return answer.to(request)

    def updating(self, schema: type[Input]) -> Handler:
        """The update handler of a route; updates by id and by slug accept different fields."""

        async def update(request: web.Request) -> web.StreamResponse:
            caller = writer(request, self.kind)
            sent = await body_values(request)
            data, problems = await self._loaded(schema, sent, partial=True)
            ref = addressed(request, self.kind)
            password = sent_password(request, data, query_values(request, PasswordInput))
            versions = wanted_versions(request)
            record = await self.store.update(self.kind, ref, data, caller, password, versions, problems)
            return self._written(request, record, sent)

        return update

    async def delete(self, request: web.Request) -> web.StreamResponse:
        caller = writer(request, self.kind)
        body = await body_values(request) if self.kind.name == "event" else {}
        password = sent_password(request, query_values(request, PasswordInput), body)
        ref = addressed(request, self.kind)
        record = await self.store.delete(self.kind, ref, caller, password, wanted_versions(request))
        return self._written(request, record, {})

    async def _loaded(
        self, schema: type[Input], sent: Mapping[str, Any], *, partial: bool = False
    ) -> tuple[Document, Problems]:
        """Validate a body, in a thread if it is long: sanitizing its HTML would block the event loop."""
        work = functools.partial(load_valid, schema, sent, self.site, partial=partial)
        return await asyncio.to_thread(work) if len(str(sent)) > LONG else work()

    def _selected(self, sent: Mapping[str, Any]) -> Selection | None:
        """The fields that a GET of one record asks for."""
        if "fields" not in sent:
            return None
        return select(self.kind.shape, tuple(load(ReadInput, sent, self.site)["fields"]))

    def _selection(self, query: Mapping[str, Any], problems: Problems) -> Selection | None:
        with problems.gather():
            return select(self.kind.shape, tuple(query["fields"])) if query.get("fields") else None
        return None

    def _written(
        self, request: web.Request, record: Document, sent: Mapping[str, Any], status: int = 200
    ) -> web.StreamResponse:
        """The response to a write: the new state of the record, with warnings about the request."""
        view, language = View(self.site, request[CALLER]), language_of(request)
        tag = record_tag(self.kind, record, view, "written")
        warnings = [translate(text, language) for text in warnings_of(self.kind, sent)]
        return item_answer(self.kind, record, view, tag, warnings, status)


def writer(request: web.Request, kind: Kind) -> Caller:
    """The caller; raises unless their role may write records of this kind."""
    caller: Caller = request[CALLER]
    if caller.role is None:
        raise Unauthenticated
    if not caller.writes or (not kind.is_post and caller.role is Role.CONTRIBUTOR):
        raise Forbidden
    return caller


def addressed(request: web.Request, kind: Kind) -> Ref:
    """The id or slug in the path."""
    if digits := request.match_info.get("id"):
        if len(digits) > 19 or int(digits) > LARGEST:
            raise NotFound(kind=kind.name)
        return int(digits)
    slug = request.match_info["slug"]
    if any("\ud800" <= char <= "\udfff" for char in slug):
        raise NotFound(kind=kind.name)
    return slug.lower()


def sent_password(request: web.Request, *places: dict[str, Any]) -> str | None:
    """The password of a protected event, from the first place that has one, or from X-Event-Password."""
    sent = [*(values.get("password") for values in places), request.headers.get("X-Event-Password")]
    return next((password for password in sent if password and isinstance(password, str)), None)
