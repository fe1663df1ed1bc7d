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

from handlers.feed_validators import dated
from handlers.requests import body_values, language_of, query_pairs, query_values, values_of
from handlers.responses import list_response, record_response
from handlers.responses.cache import (
    ByteCache,
    FragmentCache,
    PageCache,
    RecordCache,
    expires_at,
    read_response,
    record_tag,
)
from handlers.responses.conditions import (
    IDEMPOTENCY_REPLAYED,
    NESTED_TOO_DEEPLY,
    creation_conditions,
    preconditions,
)
from handlers.responses.prepared import PreparedResponse, not_modified
from handlers.store_protocol import Head, Ref, Store
from handlers.time_slices import let_others_run
from schemas.caller import Caller, Role
from schemas.errors import Forbidden, InvalidJson, NotFound, Problems, Unauthenticated
from schemas.fields import MAX_INT64
from schemas.kind import Document, Input, Kind, ReadInput, RenderContext, load, load_valid
from schemas.kinds.post import describe
from schemas.language import Text, translate
from schemas.selection import Selection, select
from schemas.site import Site
from schemas.text_fields import FreeText
from schemas.warnings import warnings_of

CALLER = "caller"
WRONG_PASSWORD = "wrong_password"  # noqa: S105 - not a password
"""Key of a request whose answer is a page that says that a password or token was wrong."""
MAX_BODY_CHARS_ON_LOOP = 20_000
"""Size of a body, in characters, above which validation runs in a thread."""


class PasswordInput(Input):
    """The password of a protected event."""

    password = FreeText(200, metadata=describe(Text("password of a protected event")))


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
        self.started = site.now()

    async def index(self, request: web.Request) -> web.StreamResponse:
        context = RenderContext(self.site, request[CALLER])

        async def render_page() -> tuple[PreparedResponse, datetime]:
            before = self.store.feed.changed_at
            pairs = query_pairs(request)
            query, problems = load_valid(
                self.kind.query_schema, values_of(pairs, self.kind.query_schema), context.site
            )
            selection = self._selection(query, problems)
            expires = expires_at(query, pairs, context.site)  # before reading: midnight may pass meanwhile
            page = await self.store.page(self.kind, query, context.caller, problems)
            items = await self.fragments.render_list(
                self.kind, page.heads, replace(context, selection=selection)
            )
            await let_others_run()
            modified, expires = dated(before, self.store.feed, expires, context.site)
            response = list_response(pairs, self.kind, page.total, items, query, context, modified)
            return response, expires

        key = (
            self.site.namespace,
            self.kind.name,
            request.rel_url.raw_query_string,
            context.caller.visibility_key,
        )
        if "If-Modified-Since" in request.headers:
            await self.store.feed.catch_up()  # the time of the last change must be known
        return (await self.pages.response(key, render_page)).respond_to(request)

    async def create(self, request: web.Request) -> web.StreamResponse:
        caller = require_writer(request, self.kind)
        sent = await body_values(request, self.kind.body_schema)
        conditions = creation_conditions(request, self.kind, caller, sent)
        created = await self.store.replay(conditions.key) if conditions.key else None
        if created is None:
            data, problems = await self._validated(self.kind.body_schema, sent)
            created = await self.store.create_once(self.kind, data, caller, problems, conditions)
        response = self._write_response(request, created.record, sent, 201)
        if created.is_replay:
            response.headers[IDEMPOTENCY_REPLAYED] = "true"
        return response

    async def read(self, request: web.Request) -> web.StreamResponse:
        sent = query_values(request, EventReadInput)
        context = RenderContext(self.site, request[CALLER], self._requested_fields(sent))
        kind, ref = self.kind, path_ref(request, self.kind)
        cached = self.cached_records.take(kind, ref, context)
        # On a cache miss the record is read anyway: the last known position will do, without a round trip.
        position = await self.store.feed.catch_up() if cached else self.store.feed.position
        if cached and cached.is_current(position):
            self.cached_records.hits += 1
            return cached.response.respond_to(request, self._reliable_after)

        async def load_response() -> tuple[PreparedResponse, Head]:
            password = sent_password(request, sent)
            if cached or "If-None-Match" in request.headers:
                head = await self.store.head(kind, ref, context.caller, password)
                if cached and cached.matches(kind, head):
                    self.cached_records.hits += 1
                    return cached.response, head
                if unchanged := not_modified(request, record_tag(kind, head, context)):
                    return unchanged, head
            self.cached_records.misses += 1
            record = await self.store.read(kind, ref, context.caller, password)
            return read_response(kind, record, context), record

        response, head = await self.store.feed.confirm(load_response)
        if response.status == 200:
            self.cached_records.keep(kind, ref, head, context, position, response)
        # Records read in one batch are all rendered before the first response is sent:
        # see OutgoingResponse.write_eof.
        await asyncio.sleep(0)
        return response.respond_to(request, self._reliable_after)

    @property
    def _reliable_after(self) -> datetime:
        """The time up to which a record may have been shown with other settings, or in a version that a
        restore has undone."""
        return max(self.started, self.store.feed.restores.replaced_at)

    def update_handler(self, schema: type[Input]) -> Handler:
        """The update handler of a route; updates by id and by slug accept different fields."""

        async def update(request: web.Request) -> web.StreamResponse:
            caller = require_writer(request, self.kind)
            sent = await body_values(request, schema)
            data, problems = await self._validated(schema, sent, partial=True)
            ref = path_ref(request, self.kind)
            password = sent_password(request, data, query_values(request, PasswordInput))
            conditions = preconditions(request, password)
            record = await self.store.update(self.kind, ref, data, caller, conditions, problems)
            return self._write_response(request, record, sent)

        return update

    async def delete(self, request: web.Request) -> web.StreamResponse:
        caller = require_writer(request, self.kind)
        body = await body_values(request) if self.kind.name == "event" else {}
        password = sent_password(request, query_values(request, PasswordInput), body)
        ref = path_ref(request, self.kind)
        record = await self.store.delete(self.kind, ref, caller, preconditions(request, password))
        return self._write_response(request, record, {})

    async def _validated(
        self, schema: type[Input], sent: Mapping[str, Any], *, partial: bool = False
    ) -> tuple[Document, Problems]:
        """Validate a body, in a thread if it is long: sanitizing its HTML would block the event loop."""
        work = functools.partial(load_valid, schema, sent, self.site, partial=partial)
        await let_others_run()
        try:
            return await asyncio.to_thread(work) if len(str(sent)) > MAX_BODY_CHARS_ON_LOOP else work()
        except RecursionError:
            raise InvalidJson(NESTED_TOO_DEEPLY) from None

    def _requested_fields(self, sent: Mapping[str, Any]) -> Selection | None:
        """The fields that a GET of one record asks for."""
        if "fields" not in sent:
            return None
        return select(self.kind.response_schema, tuple(load(ReadInput, sent, self.site)["fields"]))

    def _selection(self, query: Mapping[str, Any], problems: Problems) -> Selection | None:
        with problems.gather():
            return select(self.kind.response_schema, tuple(query["fields"])) if query.get("fields") else None
        return None

    def _write_response(
        self, request: web.Request, record: Document, sent: Mapping[str, Any], status: int = 200
    ) -> web.StreamResponse:
        """The response to a write: the new state of the record, with warnings about the request."""
        context, language = RenderContext(self.site, request[CALLER]), language_of(request)
        warnings = [translate(text, language) for text in warnings_of(self.kind, sent)]
        tag = record_tag(self.kind, record, context, f"written {warnings}")
        return record_response(self.kind, record, context, tag, warnings, status)


def require_writer(request: web.Request, kind: Kind) -> Caller:
    """The caller; raises unless their role may write records of this kind."""
    caller: Caller = request[CALLER]
    if caller.role is None:
        raise Unauthenticated
    if not caller.writes or (not kind.is_post and caller.role is Role.CONTRIBUTOR):
        raise Forbidden
    return caller


def path_ref(request: web.Request, kind: Kind) -> Ref:
    """The id or slug in the path."""
    if digits := request.match_info.get("id"):
        if len(digits) > 19 or int(digits) > MAX_INT64:
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
