"""The API description as OpenAPI 3.1, and what it has in common with Swagger 2.0."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from handlers.docs import api_description
from schemas import KINDS, Kind
from schemas.language import LANGUAGES
from service.http.errors import STATUS_AND_CODE
from tests.conftest import Api, MakeApi
from tests.samples import named
from tests.test_api_description import Document, against, described, every_setting, operations, plural_of

IDS = {
    ("GET", "/"): "readIndex",
    ("GET", "/doc"): "readSwagger",
    ("GET", "/openapi.json"): "readOpenapi",
    ("GET", "/events"): "listEvents",
    ("POST", "/events"): "createEvent",
    ("GET", "/events/{id}"): "readEvent",
    ("PATCH", "/events/{id}"): "updateEvent",
    ("PUT", "/events/{id}"): "updateEventPut",
    ("POST", "/events/{id}"): "updateEventPost",
    ("GET", "/events/by-slug/{slug}"): "readEventBySlug",
    ("PUT", "/venues/by-slug/{slug}"): "updateVenueBySlugPut",
    ("DELETE", "/organizers/by-slug/{slug}"): "deleteOrganizerBySlug",
    ("GET", "/categories"): "listCategories",
    ("POST", "/categories"): "createCategory",
    ("DELETE", "/tags/{id}"): "deleteTag",
}


async def openapi(api: Api, **query: Any) -> Document:
    status, document = await api.get("/openapi.json", **query)
    assert status == 200
    return document  # type: ignore[no-any-return]


@every_setting
async def test_document_is_valid_and_names_where_it_is_served(
    make_api: MakeApi, settings: dict[str, Any]
) -> None:
    api = await make_api(**settings)
    for language in LANGUAGES[:1] if settings else LANGUAGES:
        document = await openapi(api, lang=language)
        assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
        assert document["servers"] == [{"url": api.store.site.api}]


async def test_both_documents_describe_the_same_operations(api: Api) -> None:
    new, old = operations(await openapi(api)), operations(await described(api))
    assert new.keys() == old.keys()
    for pair, operation in new.items():
        for name in ("operationId", "summary", "tags", "security", "description"):
            assert operation.get(name) == old[pair].get(name), pair
        assert operation["responses"].keys() == old[pair]["responses"].keys()
        names = [(one["in"], one["name"]) for one in old[pair]["parameters"] if one["in"] != "body"]
        assert [(one["in"], one["name"]) for one in operation["parameters"]] == names
        assert ("requestBody" in operation) == (len(names) < len(old[pair]["parameters"]))


async def test_operations_have_ids_of_their_own(api: Api) -> None:
    ids = {pair: one["operationId"] for pair, one in operations(await openapi(api)).items()}
    assert {pair: ids[pair] for pair in IDS} == IDS
    assert len(set(ids.values())) == len(ids)


async def test_tags_are_named_in_the_order_of_the_interface(api: Api) -> None:
    document = await openapi(api)
    assert [tag["name"] for tag in document["tags"]] == [*(kind.plural for kind in KINDS), "interface"]
    assert {one["tags"][0] for one in operations(document).values()} == {
        tag["name"] for tag in document["tags"]
    }


def examples(said: Any) -> Iterator[tuple[Document, Any]]:
    """Every example of a document with the schema beside it."""
    if isinstance(said, list):
        for one in said:
            yield from examples(one)
    elif isinstance(said, dict):
        if "schema" in said:  # a parameter, a body or an answer
            schema, beside = said["schema"], said.get("examples", {})
            named = beside.values() if isinstance(beside, dict) else ()
            is_new = "content" not in said and "description" not in said
            yield from ((schema, one["value"] if is_new else one) for one in named)
            yield from ((schema, said[name]) for name in ("example", "x-example") if name in said)
        elif "x-example" in said:  # a parameter of Swagger 2.0 is its own schema
            yield said, said["x-example"]
        elif "properties" in said or "type" in said or "$ref" in said:  # a schema
            yield from ((said, one) for one in said.get("examples", ()))
            yield from ((said, said[name]) for name in ("example",) if name in said)
        for key, one in said.items():
            if key not in ("example", "examples", "x-example"):
                yield from examples(one)


def wrong(document: Document, schema: Document, value: Any) -> list[str]:
    """What is wrong with a value by a schema of the OpenAPI document."""
    root = {**schema, "components": document["components"]}
    errors = Draft202012Validator(root).iter_errors(value)
    return [f"{list(error.path)}: {error.message}" for error in errors]


async def test_examples_validate_against_their_own_schema(api: Api) -> None:
    new, old = await openapi(api), await described(api)
    found = list(examples(new)), list(examples(old))
    # At least each of 50 operations on records has an example answer, and every error has one.
    assert min(map(len, found)) > 400
    assert [(value, errors) for schema, value in found[0] if (errors := wrong(new, schema, value))] == []
    assert [(value, errors) for schema, value in found[1] if (errors := against(old, schema, value))] == []


@pytest.mark.parametrize("kind", KINDS, ids=named)
async def test_answers_have_the_documented_shape(api: Api, kind: Kind) -> None:
    document = await openapi(api)
    record = await api.made(kind.plural, **kind.example)
    several = {"venue": [{"venue": "Left"}, {"venue": "Right"}]} if kind.name == "event" else {}
    changed = (await api.patch(f"/{kind.plural}/{record['id']}", several))[1]
    cleared = (await api.patch(f"/{kind.plural}/{record['id']}", {"venue": []} if several else {}))[1]
    answer = operations(document)["GET", f"/{kind.plural}/{{id}}"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    for shown in (record, changed, cleared):
        assert wrong(document, schema, shown) == []
    assert wrong(document, schema, record | {"id": "1"}) != []


@pytest.mark.parametrize("kind", KINDS, ids=named)
async def test_bodies_take_what_the_interface_takes_and_nothing_else(api: Api, kind: Kind) -> None:
    document = await openapi(api)
    content = operations(document)["POST", f"/{kind.plural}"]["requestBody"]["content"]["application/json"]
    links = {
        "categories": [1, "concerts", "New category"],
        "venue": [2, {"venue": "New venue"}],
        "organizer": 3,
        "cost": 12.5,
        "image": 7,
    }
    schema = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
    cleared = dict.fromkeys(schema["properties"].keys() - set(schema["required"]))
    right = [{}, links if kind.name == "event" else {}, cleared]
    assert [wrong(document, content["schema"], {**kind.example, **body}) for body in right] == [[], [], []]
    bad = [{}, dict(kind.example) | {kind.name_field: 5}, dict(kind.example) | {"description": []}]
    bad += [dict(kind.example) | {"categories": [{}]}] if kind.name == "event" else []
    assert [body for body in bad if not wrong(document, content["schema"], body)] == []


async def test_only_parameters_have_defaults(api: Api) -> None:
    """A generated client would send the default of a field, and so change what it does not name."""
    document = await openapi(api)
    for name, schema in document["components"]["schemas"].items():
        assert [one for one in schema["properties"].values() if "default" in one] == [], name
    listed = operations(document)["GET", "/events"]["parameters"]
    defaults = {one["name"]: one["schema"].get("default") for one in listed}
    assert (defaults["page"], defaults["per_page"], defaults["strict_dates"]) == (1, 12, False)


async def test_errors_show_their_own_code_and_status(api: Api) -> None:
    codes = {code for _, code in STATUS_AND_CODE.values()}
    for pair, operation in operations(await openapi(api)).items():
        kind = next((kind.name for kind in KINDS if kind.plural == plural_of(pair[1])), "")
        for status, answer in operation["responses"].items():
            if status < "400":
                continue
            content = answer["content"]["application/json"]
            several = content.get("examples", {"": {"value": content.get("example")}})
            shown = [one["value"] for one in several.values()]
            assert {str(one["data"]["status"]) for one in shown} == {status}, pair
            assert len({one["code"] for one in shown}) == len(shown), pair
            for one in shown:
                general = one["code"].replace(f"{kind}-", "{kind}-", 1) if kind else one["code"]
                assert {one["code"], general} & codes, (pair, one["code"])


async def test_documents_are_built_once_and_off_the_event_loop(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[int] = []
    build = api_description.describe_api

    def counted(*given: Any) -> Document:
        built.append(threading.get_ident())
        return build(*given)

    monkeypatch.setattr(api_description, "describe_api", counted)
    api = await make_api()
    await asyncio.gather(*(api.get("/openapi.json") for _ in range(5)))
    for language in LANGUAGES:
        await api.get("/doc", lang=language)
    assert len(built) == 1
    assert built[0] != threading.get_ident()
