"""The headers of a request that make a write conditional, or a creation safe to repeat."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from handlers.responses.prepared import CODINGS, sent_header, sent_time
from schemas.caller import Caller
from schemas.errors import InvalidFields, InvalidJson
from schemas.kind import Kind
from schemas.language import Text
from schemas.preconditions import CreationConditions, IdempotencyKey, Preconditions, VersionTags

IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_REPLAYED = "Idempotency-Replayed"
ANY = "*"
RECORD_TAG = re.compile(rf'"([0-9]+-[0-9a-f]+)-[0-9a-f]+(?:-(?:{"|".join(CODINGS)}))?"')
"""The ETag of a record, which begins with that of its version and ends with the coding, if any."""
QUOTED = re.compile(r'"((?:[!#-\[\]-~]|\\["\\])*)"')
"""A string of RFC 9651, without spaces."""
VISIBLE = re.compile(r"[!-~]{1,255}")
NESTED_TOO_DEEPLY = Text("The body is nested too deeply.")
BAD_KEY = Text("Must be 1 to 255 visible ASCII characters, as they are or in double quotes.")


def preconditions(request: web.Request, password: str | None) -> Preconditions:
    """The preconditions of an update or a deletion. If-Unmodified-Since only counts without If-Match, and not
    if it is not a date."""
    matching, others = sent_header(request, "If-Match"), sent_header(request, "If-None-Match")
    since = sent_time(request, "If-Unmodified-Since") if matching is None else None
    return Preconditions(
        password,
        unmodified_since=since,
        tags=None if matching is None else version_tags_in(matching),
        excluded=frozenset() if others is None else version_tags_in(others.replace("W/", "")),
    )


def version_tags_in(tags: str) -> VersionTags:
    """The versions that a list of ETags names. Weak and foreign ones name none."""
    if tags.strip() == ANY:
        return None
    found = (RECORD_TAG.fullmatch(tag.strip()) for tag in tags.split(","))
    return frozenset(tag[1] for tag in found if tag)


def creation_conditions(
    request: web.Request, kind: Kind, caller: Caller, sent: Mapping[str, Any]
) -> CreationConditions:
    """The conditions of a creation. ETags in If-None-Match are of no record that does not exist yet."""
    needs_new_slug = (sent_header(request, "If-None-Match") or "").strip() == ANY
    if IDEMPOTENCY_KEY not in request.headers:
        return CreationConditions(None, needs_new_slug)
    key = parsed_key(sent_header(request, IDEMPOTENCY_KEY) or "")
    return CreationConditions(idempotency_key(key, kind, caller, sent), needs_new_slug)


def form_conditions(key: str, kind: Kind, caller: Caller, sent: Mapping[str, Any]) -> CreationConditions:
    """The conditions of a creation by a form: sent again with the same values, it creates no second record.
    With others it does, though its key is the same: the user has gone back to enter another one."""
    sent_key = idempotency_key(key, kind, caller, sent)
    id = hashlib.blake2b(sent_key.id + sent_key.body, digest_size=32).digest()
    return CreationConditions(sent_key._replace(id=id))


def idempotency_key(key: str, kind: Kind, caller: Caller, sent: Mapping[str, Any]) -> IdempotencyKey:
    """The key of a creation: each caller has keys of their own, for each kind. Bodies with equal values are
    the same. Digests of them are made with the key, so that passwords in them cannot be guessed from it."""
    values = canonical(sent)
    scope = f"{caller.id}:{kind.plural}:{key}".encode()
    return IdempotencyKey(
        hashlib.blake2b(scope, digest_size=32).digest(),
        hashlib.blake2b(values, digest_size=32, key=hashlib.blake2b(scope, person=b"body").digest()).digest(),
    )


def canonical(sent: Mapping[str, Any]) -> bytes:
    """The values of a body, in an order of their own."""
    try:
        return orjson.dumps(sent, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # what can be parsed may be too deep to be written again
        raise InvalidJson(NESTED_TOO_DEEPLY) from None


def parsed_key(header: str) -> str:
    """A key as it is, or as a quoted string."""
    text = header.strip()
    quoted = QUOTED.fullmatch(text)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text
    if not VISIBLE.fullmatch(key) or (text.startswith('"') and not quoted):
        raise InvalidFields({IDEMPOTENCY_KEY: BAD_KEY})
    return key
