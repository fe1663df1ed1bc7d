"""Parse query strings and request bodies, in every notation that clients use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import orjson
from aiohttp import web

from handlers.bodies import read_body
from schemas.errors import InvalidFields, InvalidJson, UnsupportedType
from schemas.kind import Input, reader_of
from schemas.language import Text, preferred

NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
MAX_FORM_DEPTH, MAX_INDEX_DIGITS = 4, 10
MAX_FIELDS = 1000


class TooManyFields(Exception):
    """A query string or form has more fields than allowed."""


def query_pairs(request: web.Request) -> list[tuple[str, str]]:
    try:
        return _pairs(request.rel_url.raw_query_string)
    except TooManyFields:
        message = Text("A query may have at most {limit} parameters.", limit=MAX_FIELDS)
        raise InvalidFields({"query": message}) from None
    except ValueError:
        raise InvalidFields({"query": Text("Must be percent-encoded UTF-8.")}) from None


def _pairs(text: str) -> list[tuple[str, str]]:
    """Names and values; empty fields, as in `a=1&&b=2`, are ignored."""
    fields = [field for field in text.split("&") if field]
    if len(fields) > MAX_FIELDS:
        raise TooManyFields
    return parse_qsl("&".join(fields), keep_blank_values=True, errors="strict")


def query_values(request: web.Request, schema: type[Input]) -> dict[str, Any]:
    """The parameters of a query string."""
    return values_of(query_pairs(request), schema) if request.rel_url.raw_query_string else {}


def values_of(pairs: Iterable[tuple[str, str]], schema: type[Input]) -> dict[str, Any]:
    """Parameters by name; one with an empty value counts as not sent."""
    lists = repeated(schema)
    values: dict[str, Any] = {}
    for name, value in pairs:
        base, _, bracket = name.partition("[")
        if bracket or (base in lists and base in values):
            before = values.get(base, [])
            values[base] = [*(before if isinstance(before, list) else [before]), value]
        elif value != "":
            values[base] = value
    return values


@cache
def repeated(schema: type[Input]) -> frozenset[str]:
    """Names of the parameters that may be sent more than once."""
    fields = reader_of(schema).fields.items()
    return frozenset(name for name, field in fields if getattr(field, "repeats", False))


def language_of(request: web.BaseRequest) -> str:
    """The language that the caller asks for."""
    return preferred(request.query.get("lang"), request.headers.get("Accept-Language", ""))


async def body_values(request: web.Request, schema: type[Input] | None = None) -> dict[str, Any]:
    """The fields of a request body: a JSON object or a form. Of a form field that is sent more than once all
    values count if it is a list in the schema, or without one; otherwise the last."""
    body = await read_body(request)
    if not body:
        return {}
    sent = request.headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
    if sent == "application/json":
        return json_values(body)
    if sent == "application/x-www-form-urlencoded":
        return _form(body, schema)
    raise UnsupportedType


def json_values(body: bytes) -> dict[str, Any]:
    """The fields of a JSON object."""
    try:
        values = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(Text("The body is not JSON: {reason}.", reason=str(error))) from None
    if not isinstance(values, dict):
        raise InvalidJson
    return values


def form_pairs(body: bytes) -> list[tuple[str, str]]:
    """Names and values of a form."""
    try:
        return _pairs(body.decode())
    except TooManyFields:
        message = Text("A form may have at most {limit} fields.", limit=MAX_FIELDS)
        raise InvalidFields({"body": message}) from None
    except ValueError:
        raise InvalidJson(Text("The form must be percent-encoded UTF-8.")) from None


def _form(body: bytes, schema: type[Input] | None) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in form_pairs(body):
        if match := NAME.fullmatch(name):
            keys = [match[1], *re.findall(r"\[([^\[\]]*)\]", match[2])][:MAX_FORM_DEPTH]
            # A name repeated without brackets is a list as well.
            is_again = len(keys) == 1 and keys[0] in values
            is_list = schema is None or keys[0] in repeated(schema)
            _place(values, [*keys, ""] if is_again and is_list else keys, value)
    return {name: _as_list(value) for name, value in values.items()}


def _place(values: dict[str, Any], keys: list[str], value: str) -> None:
    """Store a value at the path given by its bracketed name: `organizer[0][email]`, `tags[]`."""
    for key in keys[:-1]:
        name = key or _next(values)
        inner = values.setdefault(name, {})
        values[name] = inner if isinstance(inner, dict) else {"0": inner}
        values = values[name]
    values[keys[-1] or _next(values)] = value


def _next(values: dict[str, Any]) -> str:
    """The index after the highest one in use."""
    indexes = [int(key) for key in values if key.isascii() and key.isdigit() and len(key) < MAX_INDEX_DIGITS]
    return str(max(indexes, default=-1) + 1)


def _as_list(value: Any) -> Any:
    """Turn mappings whose keys are all numbers into lists."""
    if not isinstance(value, dict):
        return value
    inner = {key: _as_list(one) for key, one in value.items()}
    return list(inner.values()) if inner and all(key.isdigit() for key in inner) else inner
