"""What a webhook asks of the change feed: its query, its caller, and why it may be refused."""

from __future__ import annotations

from urllib.parse import parse_qsl

from handlers.requests import values_of
from schemas.caller import PUBLIC, Caller, Role
from schemas.changes import ChangesInput
from schemas.errors import InvalidFields, TokenExpired, reasons_of
from schemas.kind import Document, load
from schemas.site import Site


def query_of(text: str, site: Site) -> Document:
    """The query of a webhook; raises InvalidFields."""
    return load(ChangesInput, values_of(parse_qsl(text), ChangesInput), site)


def reason_of(problem: TokenExpired | InvalidFields) -> str:
    """Why a webhook cannot be sent what has changed."""
    if isinstance(problem, TokenExpired):
        return "changes that were to be sent next are not kept any more"
    return " ".join(reasons_of(problem)).removesuffix(".")  # more is said after it


def caller_of(role: str | None) -> Caller:
    return Caller(role=Role(role)) if role else PUBLIC
