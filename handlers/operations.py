"""The route table: every operation of every kind, with all that its document says."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp.typedefs import Handler

from handlers.ports import Store
from handlers.records import EventReadInput, Memories, PasswordInput, RecordHandlers
from schemas.kind import Input, Kind, ReadInput
from schemas.language import Text
from schemas.site import Site

UPDATES = ("POST", "PUT", "PATCH")
WRITING = (401, 403, 412)
SENDING = (408, 413, 415)


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


def operations(kind: Kind, store: Store, site: Site, kept: Memories) -> list[Operation]:
    """The operations of one kind; posts are addressed by slug too."""
    handlers = RecordHandlers(kind, store, site, kept)
    table = [*on_list(kind, handlers), *on_item(kind, handlers, f"/{kind.plural}/{{id:[0-9]+}}", kind.schema)]
    if kind.is_post:
        table += on_item(kind, handlers, f"/{kind.plural}/by-slug/{{slug:[^/]+}}", kind.renaming)
    return table


def on_list(kind: Kind, handlers: RecordHandlers) -> list[Operation]:
    return [
        Operation(
            methods=("GET",),
            path=f"/{kind.plural}",
            handler=handlers.index,
            summary=Text("List records"),
            kind=kind,
            query=kind.query,
            problems=(400, 404),
            is_list=True,
        ),
        Operation(
            methods=("POST",),
            path=f"/{kind.plural}",
            handler=handlers.create,
            summary=Text("Create a record"),
            kind=kind,
            body=kind.schema,
            status=201,
            problems=(400, 401, 403, *SENDING),
        ),
    ]


def on_item(kind: Kind, handlers: RecordHandlers, path: str, schema: type[Input]) -> list[Operation]:
    is_event = kind.name == "event"
    return [
        Operation(
            methods=("GET",),
            path=path,
            handler=handlers.read,
            summary=Text("Read one record"),
            kind=kind,
            query=EventReadInput if is_event else ReadInput,
            problems=(304, 400, 404, *((403, 410) if kind.is_post else ())),
        ),
        Operation(
            methods=("DELETE",),
            path=path,
            handler=handlers.delete,
            summary=Text("Delete a record"),
            kind=kind,
            query=PasswordInput if is_event else None,
            problems=(400, 404, *WRITING, *((410,) if kind.is_post else ())),
        ),
        Operation(
            methods=UPDATES,
            path=path,
            handler=handlers.updating(schema),
            summary=Text("Update a record"),
            kind=kind,
            body=schema,
            partial=True,
            problems=(400, 404, *WRITING, *SENDING, *(() if kind.is_post else (409,))),
        ),
    ]
