"""The namespace index: every route with its methods and arguments, generated from the route table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from aiohttp import web
from marshmallow import fields, missing
from marshmallow.fields import Field

from handlers.requests import language_of
from handlers.responses import static_response, to_json
from handlers.responses.prepared import PreparedResponse
from handlers.routes import Operation
from schemas.kind import Document, Input
from schemas.kinds.post import describe
from schemas.language import Text, translate
from schemas.site import NAMESPACE, Site
from schemas.text_fields import FreeText

TYPES: tuple[tuple[type[Field[Any]], str], ...] = (
    (fields.Integer, "integer"),
    (fields.Float, "number"),
    (fields.Boolean, "boolean"),
    (fields.List, "array"),
    (fields.String, "string"),
)


class IndexInput(Input):
    """Parameters of the index; both are accepted but have no effect."""

    namespace = FreeText(metadata=describe(Text("namespace of the routes"), default=NAMESPACE))
    context = FreeText(load_default="view", metadata=describe(Text("scope of the answer")))


def operations(site: Site, table: Sequence[Operation]) -> list[Operation]:
    async def index(request: web.Request) -> web.StreamResponse:
        return index_in(language_of(request)).respond_to(request)

    @cache
    def index_in(language: str) -> PreparedResponse:
        return static_response(to_json(describe_routes(site, table, language)))

    return [Operation("readIndex", ("GET",), "/", index, Text("List the routes"), query=IndexInput)]


def describe_routes(site: Site, table: Sequence[Operation], language: str) -> Document:
    routes: dict[str, Document] = {}
    for operation in table:
        path = operation.path.rstrip("/")
        pattern = f"/{NAMESPACE}" + re.sub(r"\{(\w+):([^{}]+)\}", r"(?P<\1>\2)", path)
        route = routes.setdefault(pattern, {"namespace": NAMESPACE, "methods": [], "endpoints": []})
        route["methods"] += operation.methods
        route["endpoints"].append({"methods": operation.methods, "args": arguments(operation, language)})
        if "{" not in operation.path:
            route["_links"] = {"self": [{"href": site.api + path}]}
    return {"namespace": NAMESPACE, "routes": routes, "_links": {"up": [{"href": site.base_url + "/"}]}}


def arguments(operation: Operation, language: str) -> Document:
    """Every argument of an operation: path parameters, then the fields of its schemas."""
    found: Document = {
        name: {"required": True, "type": "integer" if name == "id" else "string"}
        for name in re.findall(r"\{(\w+):", operation.path)
    }
    if "ending" in found:
        found["ending"]["enum"] = [one.ending for one in operation.formats]
    for schema in (operation.query, operation.body):
        for name, field in (schema().fields if schema else {}).items():
            found.setdefault(name, argument(field, operation.partial, language))
    return found


def argument(field: Field[Any], partial: bool, language: str) -> Document:
    entry: Document = {"required": field.required and not partial}
    word = next((word for base, word in TYPES if isinstance(field, base)), None)
    if word := field.metadata.get("type", word):
        entry["type"] = word
    default = field.load_default if field.load_default is not missing else field.metadata.get("default")
    if default is not None:
        entry["default"] = default
    if "enum" in field.metadata:
        entry["enum"] = field.metadata["enum"]
    return entry | {"description": translate(field.metadata.get("description", ""), language)}
