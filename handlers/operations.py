"""The route table: every operation on every kind of record, with its documentation."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp.typedefs import Handler

from handlers.ports import Store
from handlers.records import Caches, EventReadInput, PasswordInput, RecordHandlers
from schemas import errors
from schemas.errors import InvalidFields, Problem
from schemas.kind import Input, Kind, ReadInput, reader_of
from schemas.language import Text
from schemas.site import Site

UPDATES = ("POST", "PUT", "PATCH")
SENDING = (errors.TooSlow(), errors.TooLarge(), errors.UnsupportedType())
BAD_QUERY = InvalidFields({"query": Text("Must be percent-encoded UTF-8.")})
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
    is_list: bool = False

    def id_of(self, method: str) -> str:
        return self.id if method == self.methods[-1] else self.id + method.capitalize()


def operations(kind: Kind, store: Store, site: Site, caches: Caches) -> list[Operation]:
    """The operations on one kind; posts can be addressed by slug too."""
    handlers = RecordHandlers(kind, store, site, caches)
    table = [*on_list(kind, handlers), *on_item(kind, handlers, f"/{kind.plural}/{{id:[0-9]+}}", kind.schema)]
    if kind.is_post:
        path = f"/{kind.plural}/by-slug/{{slug:[^/]+}}"
        table += on_item(kind, handlers, path, kind.renaming, "BySlug")
    return table


def on_list(kind: Kind, handlers: RecordHandlers) -> list[Operation]:
    required = [name for name, field in reader_of(kind.schema).fields.items() if field.required]
    return [
        Operation(
            id=f"list{kind.plural.capitalize()}",
            methods=("GET",),
            path=f"/{kind.plural}",
            handler=handlers.index,
            summary=kind.summaries["list"],
            kind=kind,
            query=kind.query,
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
            body=kind.schema,
            status=201,
            problems=(
                errors.MissingFields(required),
                *bad_body(kind),
                *(() if kind.is_post else (errors.TermExists(term_id=1),)),
                errors.Forbidden(),
            ),
        ),
    ]


def on_item(
    kind: Kind, handlers: RecordHandlers, path: str, schema: type[Input], by: str = ""
) -> list[Operation]:
    is_event = kind.name == "event"
    unknown = errors.NotFound(kind=kind.name)
    locked = (errors.PasswordNeeded(),) if is_event else ()
    hidden = (errors.NotAccessible(kind=kind.name),) if kind.is_post else ()
    trashed = (errors.Trashed(kind=kind.name),) if kind.is_post else ()
    refused = (unknown, errors.Forbidden(), *locked, errors.PreconditionFailed())
    return [
        Operation(
            id=f"read{kind.name.capitalize()}{by}",
            methods=("GET",),
            path=path,
            handler=handlers.read,
            summary=kind.summaries["read" + by],
            kind=kind,
            query=EventReadInput if is_event else ReadInput,
            problems=(BAD_QUERY, unknown, *hidden, *locked, *trashed),
        ),
        Operation(
            id=f"delete{kind.name.capitalize()}{by}",
            methods=("DELETE",),
            path=path,
            handler=handlers.delete,
            summary=kind.summaries["delete" + by],
            kind=kind,
            query=PasswordInput if is_event else None,
            problems=(BAD_QUERY, *refused, *trashed),
        ),
        Operation(
            id=f"update{kind.name.capitalize()}{by}",
            methods=UPDATES,
            path=path,
            handler=handlers.updating(schema),
            summary=kind.summaries["update" + by],
            kind=kind,
            body=schema,
            partial=True,
            problems=(
                *bad_body(kind),
                *refused,
                *(() if kind.is_post else (errors.DuplicateTermSlug(),)),
            ),
        ),
    ]


def bad_body(kind: Kind) -> tuple[Problem, ...]:
    """Errors that any request body can cause."""
    return (InvalidFields({kind.title: Text("Must not be blank.")}), errors.InvalidJson(), *SENDING)
