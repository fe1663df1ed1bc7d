"""The protocols of the store that handlers depend on; the service implements them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from schemas.caller import Caller
from schemas.errors import Problems
from schemas.kind import Document, Kind
from schemas.preconditions import CreationConditions, IdempotencyKey, Preconditions
from schemas.results import ChangesPage, Created, Page
from schemas.site import Site

Ref = int | str
Result = TypeVar("Result")
Head = Mapping[str, Any]
"""A projection of a record: its version and the fields that decide who may see it."""


class Scan(Protocol):
    """The records of a whole list, without their content, and the time zones of its events. The scan of a
    long list is not complete: only `heads` has its records."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def ids(self) -> Sequence[int]: ...
    @property
    def digest(self) -> str: ...
    @property
    def modified(self) -> datetime: ...
    @property
    def zones(self) -> dict[str, tuple[datetime, datetime]]: ...
    def heads(self, size: int) -> AsyncGenerator[list[Document]]:
        """All records of the list in batches, with their versions if the scan is complete."""


class Restores(Protocol):
    """What is known about restores."""

    @property
    def replaced_at(self) -> datetime:
        """The time at which all records were replaced last, in UTC."""


class ChangeFeed(Protocol):
    """The number of changes to records so far; `confirm` runs a read, again if its result may be outdated."""

    position: int

    @property
    def last_change(self) -> Hashable:
        """The exact time of the last change."""

    @property
    def changed_at(self) -> datetime:
        """The time of the last change, in UTC."""

    @property
    def now(self) -> datetime:
        """The time by the clock that changes have."""

    @property
    def restores(self) -> Restores: ...
    def catch_up(self) -> Awaitable[int]: ...
    def confirm(self, read: Callable[[], Awaitable[Result]]) -> Awaitable[Result]: ...


class UndoSteps(Protocol):
    """Values that records had before they were changed."""

    async def keep(self, kind: Kind, record: Document, values: Document, was: Mapping[str, str]) -> str: ...
    async def find(self, kind: Kind, id: int, key: str) -> Document | None: ...


class Store(Protocol):
    """Access to records of all kinds."""

    site: Site

    @property
    def feed(self) -> ChangeFeed: ...
    @property
    def undo(self) -> UndoSteps: ...

    async def page(
        self, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems
    ) -> Page: ...
    async def scan(
        self,
        kind: Kind,
        queries: Iterable[Mapping[str, Any]],
        caller: Caller,
        problems: Problems,
        max_records: int,
    ) -> Scan: ...
    async def changes(
        self, kinds: Sequence[Kind], query: Mapping[str, Any], caller: Caller, problems: Problems
    ) -> ChangesPage: ...
    async def wait_for_changes(self, position: int) -> None: ...
    async def instance(self) -> UUID: ...
    async def create_once(
        self,
        kind: Kind,
        data: Document,
        caller: Caller,
        problems: Problems,
        conditions: CreationConditions,
    ) -> Created: ...
    async def replay(self, key: IdempotencyKey) -> Created | None: ...
    async def head(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Head: ...
    async def read(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Document: ...
    async def find_many(self, kind: Kind, ids: Sequence[int]) -> list[Document]: ...
    async def update(
        self,
        kind: Kind,
        ref: Ref,
        data: Document,
        caller: Caller,
        preconditions: Preconditions,
        problems: Problems,
    ) -> Document: ...
    async def delete(
        self, kind: Kind, ref: Ref, caller: Caller, preconditions: Preconditions
    ) -> Document: ...
    async def is_alive(self) -> bool: ...
