"""The records that the editor opens: found, allowed, and unlocked with their password."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from handlers.bodies import read_body
from handlers.editor.frame import Frame
from handlers.editor.lists import may_write
from handlers.records import WRONG_PASSWORD
from handlers.requests import form_pairs
from schemas.caller import Caller
from schemas.errors import Forbidden, NotAccessible, NotFound, PasswordNeeded
from schemas.kind import Document, Kind
from schemas.kinds.event_representation import is_locked

SECRETS = ("current_password", "token")
"""Inputs that are asked for again."""


async def find(frame: Frame, kind: Kind, id: int, caller: Caller) -> Document:
    """A record that the caller may see, also if it is in the trash."""
    if not (found := await frame.store.find_many(kind, [id])):
        raise NotFound(kind=kind.name)
    if not caller.sees(found[0]):
        raise NotAccessible(kind=kind.name)
    return found[0]


async def find_own(frame: Frame, kind: Kind, id: int, caller: Caller) -> Document:
    """A record that the caller may change."""
    if not may_write(caller, kind, record := await find(frame, kind, id, caller)):
        raise Forbidden
    return record


async def unlock(frame: Frame, kind: Kind, record: Document, caller: Caller, password: str) -> None:
    """Raise PasswordNeeded unless the caller may read the record."""
    if is_locked(record) and not caller.bypasses_passwords and record["status"] != "trash":
        await frame.store.read(kind, record["_id"], caller, password or None)


async def ask_password(
    frame: Frame, request: web.Request, kind: Kind, problem: PasswordNeeded
) -> web.StreamResponse:
    """The page that asks for the password of an event. It keeps everything that was sent, and sends it again
    with the password."""
    if problem.was_wrong:
        request[WRONG_PASSWORD] = True
    kept = [pair for pair in form_pairs(await read_body(request)) if pair[0] not in SECRETS]
    return await frame.respond(
        request, "password.html", 403, kind=kind, is_wrong=problem.was_wrong, kept=kept
    )


def password_in(sent: Mapping[str, Any]) -> str:
    sent_password = sent.get("current_password")
    return sent_password if isinstance(sent_password, str) else ""


def was_in(sent: Mapping[str, Any]) -> dict[str, str]:
    """The digests of the inputs when the form was made."""
    try:
        was = orjson.loads(sent.get("was") or "{}") if isinstance(sent.get("was", ""), str) else {}
    except orjson.JSONDecodeError:
        return {}
    return {str(name): str(digest) for name, digest in was.items()} if isinstance(was, dict) else {}


def version_in(sent: Mapping[str, Any]) -> int:
    """The version that a form was made from; 0, which no record has, if there is none."""
    version = sent.get("version")
    return int(version) if isinstance(version, str) and version.isdecimal() and len(version) < 19 else 0
