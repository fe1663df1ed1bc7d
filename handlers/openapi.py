"""The two published forms of the generated API description: Swagger 2.0 and OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from schemas.kind import Document

JSON = "application/json"
SECURITY = {"apiKey": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
"""OpenAPI 3.1 security schemes by their Swagger 2.0 type."""


def swagger(generated: Document) -> Document:
    """Reduce to Swagger 2.0, which allows one example per response and no nullable parameters."""

    def answer(said: Document) -> Document:
        if "examples" not in said:
            return said
        return said | {"examples": {JSON: next(iter(said["examples"].values()))}}

    def operation(said: Document) -> Document:
        parameters = [_without(one, "x-nullable") for one in said["parameters"]]
        answers = {status: answer(one) for status, one in said["responses"].items()}
        return said | {"parameters": parameters, "responses": answers}

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
        "paths": _each_operation(generated, lambda said: _operation(said, examples)),
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


def _without(said: Document, *names: str) -> Document:
    return {name: one for name, one in said.items() if name not in names}


def _security(said: Document) -> Document:
    # OpenAPI 3.1 has a bearer scheme, so the description of how to write the header is not needed.
    return SECURITY[said["type"]] | ({} if said["type"] == "apiKey" else {"description": said["description"]})


def _operation(said: Document, examples: Document) -> Document:
    told = _without(said, "produces", "parameters", "responses")
    told["parameters"] = [_parameter(one) for one in said["parameters"] if one["in"] != "body"]
    for one in said["parameters"]:
        if one["in"] == "body":
            content = {"schema": _schema(one["schema"]), "example": examples[one["schema"]["$ref"]]}
            told["requestBody"] = {"required": one["required"], "content": {JSON: content}}
    told["responses"] = {status: _answer(one) for status, one in said["responses"].items()}
    return told


def _parameter(said: Document) -> Document:
    names = ("in", "name", "required", "description")
    told = {name: said[name] for name in names}
    if "x-example" in said:
        told["example"] = said["x-example"]
    schema = _schema(_without(said, *names, "x-example", "x-nullable", "collectionFormat"))
    return told | {"schema": schema | {name: said[name] for name in ("default",) if name in said}}


def _answer(said: Document) -> Document:
    told: Document = {"description": said["description"]}
    if "schema" not in said:
        return told
    content: Document = {"schema": _schema(said["schema"])}
    found = said.get("examples", {})
    if len(found) == 1:
        (content["example"],) = found.values()
    elif found:
        content["examples"] = {name: {"value": value} for name, value in found.items()}
    return told | {"content": {JSON: content}}


def _schema(said: Document) -> Document:
    """Convert a schema to JSON Schema, which has null and oneOf."""
    told: Document = {}
    for name, one in said.items():
        match name:
            case "$ref":
                told[name] = one.replace("#/definitions/", "#/components/schemas/")
            case "properties":
                told[name] = {key: _schema(value) for key, value in one.items()}
            case "items" | "additionalProperties" if isinstance(one, dict):
                told[name] = _schema(one)
            case "allOf" | "x-oneOf":
                told[name.removeprefix("x-")] = [_schema(value) for value in one]
            case "example":
                told["examples"] = [one]
            case "x-nullable" | "default":
                pass
            case _:
                told[name] = one
    return _or_null(told) if said.get("x-nullable") else told


def _or_null(told: Document) -> Document:
    if "enum" in told:
        told = told | {"enum": [*told["enum"], None]}
    if "type" in told:
        return told | {"type": [told["type"], "null"]}
    if "oneOf" in told:
        return told | {"oneOf": [*told["oneOf"], {"type": "null"}]}
    named = {name: told[name] for name in ("$ref", "allOf") if name in told}
    return _without(told, *named) | {"anyOf": [named, {"type": "null"}]} if named else told
