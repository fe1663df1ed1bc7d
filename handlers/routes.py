"""The route table: every operation on every kind of record, with its documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp.typedefs import Handler
from marshmallow import Schema

from handlers.changes import EVENT_STREAM, ChangesHandlers
from handlers.feeds import FeedHandlers
from handlers.records import Caches, EventReadInput, PasswordInput, RecordHandlers
from handlers.responses.conditions import IDEMPOTENCY_KEY
from handlers.responses.negotiation import negotiating
from handlers.store_protocol import Store
from schemas import errors
from schemas.changes import ChangesInput, ChangesResponse
from schemas.errors import SLUG_TAKEN, InvalidFields, Problem
from schemas.formats import Format
from schemas.kind import Input, Kind, ReadInput, reader_of
from schemas.language import Text
from schemas.site import Site

UPDATE_METHODS = ("POST", "PUT", "PATCH")
BODY_PROBLEMS = (errors.TooSlow(), errors.TooLarge(), errors.UnsupportedType())
BAD_QUERY = InvalidFields({"query": Text("Must be percent-encoded UTF-8.")})
KEY_HEADER = {
    IDEMPOTENCY_KEY: Text(
        "makes the creation safe to repeat: for 24 hours, the same key and body return the same record"
    )
}
NEW_SLUG_HEADER = {"If-None-Match": Text("* refuses a record whose slug is taken, instead of numbering it")}
MATCH_HEADERS = {
    "If-Match": Text("ETags: the record is only changed if it has one of them"),
    "If-Unmodified-Since": Text("date and time: a record that was changed later is not changed"),
}
BAD_PAGE = InvalidFields({"page": Text("Must be a whole number of at least {least}.", least=1)})


@dataclass(frozen=True)
class Operation:
    """One entry of the route table, with everything the API description says about it."""

    id: str
    """The operationId of the last of its methods; see `id_of` for the others."""
    methods: tuple[str, ...]
    path: str
    handler: Handler
    summary: Text
    kind: Kind | None = None
    query: type[Input] | None = None
    body: type[Input] | None = None
    partial: bool = False
    status: int = 200
    problems: tuple[Problem, ...] = ()
    """One example of each error that it can return."""
    headers: Mapping[str, Text] = field(default_factory=dict)
    """The request headers that it reads, with their descriptions."""
    is_list: bool = False
    formats: tuple[Format, ...] = ()
    """The formats of its response, if that is not JSON."""
    response: type[Schema] | None = None
    """The schema of its response, if that is not a record or a list of records."""
    media_type: str = ""
    """The type of its response, if that has neither a schema nor a choice of formats."""

    def id_of(self, method: str) -> str:
        return self.id if method == self.methods[-1] else self.id + method.capitalize()


def operations(kind: Kind, store: Store, site: Site, caches: Caches) -> list[Operation]:
    """The operations on one kind; posts can be addressed by slug too."""
    handlers, feeds = RecordHandlers(kind, store, site, caches), FeedHandlers(kind, store, site, caches)
    by_id, by_slug = f"/{kind.plural}/{{id:[0-9]+}}", f"/{kind.plural}/by-slug/{{slug:[^/.]+}}"
    table = [
        *list_operations(kind, handlers, feeds),
        *record_operations(kind, handlers, feeds, by_id, kind.body_schema),
    ]
    if feeds.formats:
        table += feed_operations(kind, feeds, by_id, by_slug)
    if kind.is_post:
        table += record_operations(kind, handlers, feeds, by_slug, kind.slug_update_schema, "BySlug")
    return table


def changes_operations(store: Store, site: Site, caches: Caches) -> list[Operation]:
    """The change feed of all kinds."""
    handlers = ChangesHandlers(store, site, caches)
    shared: Any = {
        "methods": ("GET",),
        "query": ChangesInput,
        "problems": (BAD_QUERY, errors.TokenExpired()),
    }
    return [
        Operation(
            id="listChanges",
            path="/changes",
            handler=handlers.index,
            summary=Text("List changes since a token"),
            response=ChangesResponse,
            **shared,
        ),
        Operation(
            id="streamChanges",
            path="/changes/stream",
            handler=handlers.stream,
            summary=Text("Receive changes as server-sent events"),
            media_type=EVENT_STREAM,
            **shared,
        ),
    ]


def feed_operations(kind: Kind, feeds: FeedHandlers, by_id: str, by_slug: str) -> list[Operation]:
    """The list and single records in other formats; the ending of the path names the format."""
    ending = f".{{ending:{'|'.join(feeds.formats)}}}"
    shared: Any = {"methods": ("GET",), "kind": kind, "formats": tuple(feeds.formats.values())}
    password = PasswordInput if kind.name == "event" else None
    unreadable = (BAD_QUERY, *unreadable_problems(kind))
    plural, name = kind.plural.capitalize(), kind.name.capitalize()
    return [
        Operation(
            id=f"feed{plural}",
            path=f"/{kind.plural}{ending}",
            handler=feeds.index,
            summary=kind.summaries["feed"],
            query=kind.feed_schema,
            problems=(BAD_QUERY, errors.NoRoute()),
            is_list=True,
            **shared,
        ),
        *(
            Operation(
                id=f"export{name}{by}",
                path=path + ending,
                handler=feeds.read,
                summary=kind.summaries["export" + by],
                query=password,
                problems=unreadable,
                **shared,
            )
            for path, by in ((by_id, ""), (by_slug, "BySlug"))
        ),
    ]


def unreadable_problems(kind: Kind) -> tuple[Problem, ...]:
    """Errors of a request for one record."""
    hidden = (errors.NotAccessible(kind=kind.name), errors.Trashed(kind=kind.name)) if kind.is_post else ()
    locked = (errors.PasswordNeeded(),) if kind.name == "event" else ()
    return (errors.NotFound(kind=kind.name), *hidden, *locked)


def list_operations(kind: Kind, handlers: RecordHandlers, feeds: FeedHandlers) -> list[Operation]:
    required = [name for name, field in reader_of(kind.body_schema).fields.items() if field.required]
    return [
        Operation(
            id=f"list{kind.plural.capitalize()}",
            methods=("GET",),
            path=f"/{kind.plural}",
            handler=negotiating(kind, handlers.index, feeds.index),
            summary=kind.summaries["list"],
            kind=kind,
            query=kind.query_schema,
            problems=(BAD_PAGE, errors.PageNotFound(kind=kind.name)),
            is_list=True,
        ),
        Operation(
            id=f"create{kind.name.capitalize()}",
            methods=("POST",),
            path=f"/{kind.plural}",
            handler=handlers.create,
            summary=kind.summaries["create"],
            kind=kind,
            body=kind.body_schema,
            status=201,
            headers=KEY_HEADER | NEW_SLUG_HEADER,
            problems=(
                errors.MissingFields(required),
                *body_problems(kind),
                *(() if kind.is_post else (errors.TermExists(term_id=1),)),
                errors.Forbidden(),
                errors.PreconditionFailed(SLUG_TAKEN),
                errors.IdempotencyKeyReused(),
            ),
        ),
    ]


def record_operations(
    kind: Kind,
    handlers: RecordHandlers,
    feeds: FeedHandlers,
    path: str,
    schema: type[Input],
    by: str = "",
) -> list[Operation]:
    is_event = kind.name == "event"
    unknown = errors.NotFound(kind=kind.name)
    locked = (errors.PasswordNeeded(),) if is_event else ()
    trashed = (errors.Trashed(kind=kind.name),) if kind.is_post else ()
    refused = (unknown, errors.Forbidden(), *locked, errors.PreconditionFailed())
    return [
        Operation(
            id=f"read{kind.name.capitalize()}{by}",
            methods=("GET",),
            path=path,
            handler=negotiating(kind, handlers.read, feeds.read),
            summary=kind.summaries["read" + by],
            kind=kind,
            query=EventReadInput if is_event else ReadInput,
            problems=(BAD_QUERY, *unreadable_problems(kind)),
        ),
        Operation(
            id=f"delete{kind.name.capitalize()}{by}",
            methods=("DELETE",),
            path=path,
            handler=handlers.delete,
            summary=kind.summaries["delete" + by],
            kind=kind,
            query=PasswordInput if is_event else None,
            headers=MATCH_HEADERS,
            problems=(BAD_QUERY, *refused, *trashed),
        ),
        Operation(
            id=f"update{kind.name.capitalize()}{by}",
            methods=UPDATE_METHODS,
            path=path,
            handler=handlers.update_handler(schema),
            summary=kind.summaries["update" + by],
            kind=kind,
            body=schema,
            partial=True,
            headers=MATCH_HEADERS,
            problems=(
                *body_problems(kind),
                *refused,
                *(() if kind.is_post else (errors.DuplicateTermSlug(),)),
            ),
        ),
    ]


def body_problems(kind: Kind) -> tuple[Problem, ...]:
    """Errors that any request body can cause."""
    return (
        InvalidFields({kind.name_field: Text("Must not be blank.")}),
        errors.InvalidJson(),
        *BODY_PROBLEMS,
    )
