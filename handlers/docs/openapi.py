"""The two published forms of the generated API description: Swagger 2.0 and OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from schemas.kind import Document

JSON = "application/json"
SECURITY = {"apiKey": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
"""OpenAPI 3.1 security schemes by their Swagger 2.0 type."""


def swagger(generated: Document) -> Document:
    """Reduce to Swagger 2.0, which allows one example per response and no nullable parameters."""

    def response(source: Document) -> Document:
        if "examples" not in source:
            return source
        return source | {"examples": {JSON: next(iter(source["examples"].values()))}}

    def operation(source: Document) -> Document:
        parameters = [_without(one, "x-nullable") for one in source["parameters"]]
        responses = {status: response(one) for status, one in source["responses"].items()}
        return source | {"parameters": parameters, "responses": responses}

    return generated | {"paths": _each_operation(generated, operation)}


def openapi(generated: Document) -> Document:
    """Convert to OpenAPI 3.1. Only parameters keep defaults: generated clients would send those of a body."""
    host, path = generated["host"], generated["basePath"]
    definitions, security = generated["definitions"], generated["securityDefinitions"]
    examples = {f"#/definitions/{name}": one.get("example") for name, one in definitions.items()}
    return {
        "openapi": "3.1.0",
        "info": generated["info"],
        "tags": generated["tags"],
        "servers": [{"url": f"{scheme}://{host}{path}"} for scheme in generated["schemes"]],
        "paths": _each_operation(generated, lambda source: _operation(source, examples)),
        "components": {
            "schemas": {name: _schema(one) for name, one in definitions.items()},
            "securitySchemes": {name: _security(one) for name, one in security.items()},
        },
    }


def _each_operation(generated: Document, change: Any) -> Document:
    return {
        path: {method: change(operation) for method, operation in methods.items()}
        for path, methods in generated["paths"].items()
    }


def _without(source: Document, *names: str) -> Document:
    return {name: one for name, one in source.items() if name not in names}


def _security(source: Document) -> Document:
    # OpenAPI 3.1 has a bearer scheme, so the description of how to write the header is not needed.
    return SECURITY[source["type"]] | (
        {} if source["type"] == "apiKey" else {"description": source["description"]}
    )


def _operation(source: Document, examples: Document) -> Document:
    result = _without(source, "produces", "parameters", "responses")
    result["parameters"] = [_parameter(one) for one in source["parameters"] if one["in"] != "body"]
    for one in source["parameters"]:
        if one["in"] == "body":
            content = {"schema": _schema(one["schema"]), "example": examples[one["schema"]["$ref"]]}
            result["requestBody"] = {"required": one["required"], "content": {JSON: content}}
    result["responses"] = {status: _response(one) for status, one in source["responses"].items()}
    for name in source["produces"]:
        if name != JSON:
            kind = "object" if name.endswith("json") else "string"
            result["responses"]["200"].setdefault("content", {})[name] = {"schema": {"type": kind}}
    return result


def _parameter(source: Document) -> Document:
    names = ("in", "name", "required", "description")
    result = {name: source[name] for name in names}
    if "x-example" in source:
        result["example"] = source["x-example"]
    schema = _schema(_without(source, *names, "x-example", "x-nullable", "collectionFormat"))
    return result | {"schema": schema | {name: source[name] for name in ("default",) if name in source}}


def _response(source: Document) -> Document:
    result: Document = {"description": source["description"]}
    if "schema" not in source:
        return result
    content: Document = {"schema": _schema(source["schema"])}
    found = source.get("examples", {})
    if len(found) == 1:
        (content["example"],) = found.values()
    elif found:
        content["examples"] = {name: {"value": value} for name, value in found.items()}
    return result | {"content": {JSON: content}}


def _schema(source: Document) -> Document:
    """Convert a schema to JSON Schema, which has null and oneOf."""
    result: Document = {}
    for name, one in source.items():
        match name:
            case "$ref":
                result[name] = one.replace("#/definitions/", "#/components/schemas/")
            case "properties":
                result[name] = {key: _schema(value) for key, value in one.items()}
            case "items" | "additionalProperties" if isinstance(one, dict):
                result[name] = _schema(one)
            case "allOf" | "x-oneOf":
                result[name.removeprefix("x-")] = [_schema(value) for value in one]
            case "example":
                result["examples"] = [one]
            case "x-nullable" | "default":
                pass
            case _:
                result[name] = one
    return _or_null(result) if source.get("x-nullable") else result


def _or_null(result: Document) -> Document:
    if "enum" in result:
        result = result | {"enum": [*result["enum"], None]}
    if "type" in result:
        return result | {"type": [result["type"], "null"]}
    if "oneOf" in result:
        return result | {"oneOf": [*result["oneOf"], {"type": "null"}]}
    named = {name: result[name] for name in ("$ref", "allOf") if name in result}
    return _without(result, *named) | {"anyOf": [named, {"type": "null"}]} if named else result
