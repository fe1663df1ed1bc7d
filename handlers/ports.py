"""What handlers need from the store; the service gives it to them."""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Mapping, Sequence
from typing import Any, Protocol

from schemas.caller import Caller
from schemas.errors import Problems
from schemas.kind import Document, Kind
from schemas.site import Site

Ref = int | str
Glance = Mapping[str, Any]
"""What tells a record's version and who may see it, without its content."""


class Page(Protocol):
    """One page of a list, and how long the list is."""

    @property
    def glances(self) -> list[Document]: ...
    @property
    def total(self) -> int: ...


class Generation(Protocol):
    """What tells whether anything was written since; None where it cannot be told."""

    @property
    def last(self) -> Hashable | None: ...
    def now(self) -> Awaitable[Hashable | None]: ...


class Store(Protocol):
    """Records of all kinds."""

    site: Site

    @property
    def generation(self) -> Generation: ...

    async def page(
        self, kind: Kind, query: Mapping[str, Any], caller: Caller, problems: Problems
    ) -> Page: ...
    async def create(self, kind: Kind, data: Document, caller: Caller, problems: Problems) -> Document: ...
    async def glance(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Glance: ...
    async def read(self, kind: Kind, ref: Ref, caller: Caller, password: str | None) -> Document: ...
    async def fetch(self, kind: Kind, ids: Sequence[int]) -> list[Document]: ...
    async def update(
        self,
        kind: Kind,
        ref: Ref,
        data: Document,
        caller: Caller,
        password: str | None,
        versions: frozenset[int] | None,
        problems: Problems,
    ) -> Document: ...
    async def delete(
        self, kind: Kind, ref: Ref, caller: Caller, password: str | None, versions: frozenset[int] | None
    ) -> Document: ...
    async def is_alive(self) -> bool: ...
