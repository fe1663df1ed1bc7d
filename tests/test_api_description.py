"""The API description tells the truth: whole, valid, and every word of it has an effect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import pytest
from jsonschema import Draft4Validator
from openapi_spec_validator import OpenAPIV2SpecValidator

from schemas import KINDS, Kind
from schemas.language import LANGUAGES
from schemas.site import Site
from tests.conftest import Api, MakeApi
from tests.samples import POSTS, TERMS, named

Document = dict[str, Any]
Pair = tuple[str, str]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=named)

# The interface, written down by hand.

ROUTES = """
GET /
GET /doc
GET /openapi.json
GET POST /events
GET DELETE POST PUT PATCH /events/{id}
GET DELETE POST PUT PATCH /events/by-slug/{slug}
GET POST /venues
GET DELETE POST PUT PATCH /venues/{id}
GET DELETE POST PUT PATCH /venues/by-slug/{slug}
GET POST /organizers
GET DELETE POST PUT PATCH /organizers/{id}
GET DELETE POST PUT PATCH /organizers/by-slug/{slug}
GET POST /categories
GET DELETE POST PUT PATCH /categories/{id}
GET POST /tags
GET DELETE POST PUT PATCH /tags/{id}
GET /events.{ending}
GET /events/{id}.{ending}
GET /events/by-slug/{slug}.{ending}
GET /venues.{ending}
GET /venues/{id}.{ending}
GET /venues/by-slug/{slug}.{ending}
GET /organizers.{ending}
GET /organizers/{id}.{ending}
GET /organizers/by-slug/{slug}.{ending}
GET /changes
GET /changes/stream
"""
PAIRS = {
    (method, words[-1])
    for words in map(str.split, ROUTES.strip().splitlines())
    for method in words[:-1]
}  # fmt: skip

# Name, type, default; `any` where the interface leaves the type open, `-` where there is no default. Where it
# names one type and takes others too, such as names for IDs, all of them are here.
INDEX_QUERY = """
namespace  any  calendar/events/v1
context    any  view
"""
EVENTS_QUERY = """
page           integer    1
per_page       integer    12
start_date     any        -
end_date       any        -
starts_before  any        -
starts_after   any        -
ends_before    any        -
ends_after     any        -
strict_dates   any        False
search         string     -
categories     [string]   -
tags           [string]   -
venue          [integer]  -
organizer      [integer]  -
featured       boolean    -
status         string     -
geoloc         boolean    -
geoloc_lat     number     -
geoloc_lng     number     -
include        [integer]  -
post_parent    integer    -
ticketed       boolean    -
"""
LINKED_QUERY = """
page                integer  1
per_page            integer  12
search              string   -
event               integer  -
has_events          any      -
only_with_upcoming  any      False
status              string   -
"""
TAGS_QUERY = """
page        integer    1
per_page    integer    12
search      string     -
exclude     [integer]  -
include     [integer]  -
order       string     -
orderby     string     -
hide_empty  boolean    True
post        integer    -
event       integer    -
slug        string     -
"""
CATEGORIES_QUERY = TAGS_QUERY + "parent integer -"
QUERIES = {
    "/": INDEX_QUERY,
    "/events": EVENTS_QUERY,
    "/venues": LINKED_QUERY,
    "/organizers": LINKED_QUERY,
    "/categories": CATEGORIES_QUERY,
    "/tags": TAGS_QUERY,
    "/events/{id}": "password string -",
}
# Ours: the interface does not have them.
MORE_QUERY = {
    "/events": {"geoloc_radius", "orderby", "order", "modified_after"},
    "/venues": {"orderby", "order", "modified_after"},
    "/organizers": {"orderby", "order", "modified_after"},
    "/categories": {"modified_after"},
    "/tags": {"modified_after"},
    "/events/by-slug/{slug}": {"password"},
}
CHANGES_QUERY = """
since  string  -
kinds  [string] -
limit  integer 100
"""
CHANGES_PATHS = ("/changes", "/changes/stream")
ENDING = ".{ending}"
NOT_IN_FEEDS = {"page", "per_page"}

# Name, type, default; a star for what a new record must have.
EVENT_BODY = """
title*              string     -
start_date*         string     -
end_date*           string     -
author              integer    -
date                string     -
date_utc            string     -
description         string     -
slug                string     -
excerpt             string     -
status              string     -
timezone            string     -
all_day             boolean    False
image               string|integer  -
cost                string|number   -
website             any        -
show_map            boolean    -
show_map_link       boolean    -
hide_from_listings  boolean    -
sticky              boolean    -
featured            boolean    -
categories          [integer|string]  -
tags                [integer|string]  -
venue               integer|VenueInput|[integer|VenueInput]  -
organizer           integer|OrganizerInput|[integer|OrganizerInput]  -
"""
VENUE_BODY = """
venue*         string   -
author         integer  -
date           string   -
date_utc       string   -
description    string   -
status         string   -
show_map       boolean|string  -
show_map_link  boolean|string  -
address        string   -
city           string   -
country        string   -
province       string   -
state          string   -
zip            string   -
phone          string   -
stateprovince  string   -
website        string   -
image          string|integer  -
"""
ORGANIZER_BODY = """
organizer*   string   -
author       integer  -
date         string   -
date_utc     string   -
description  string   -
status       string   -
phone        string   -
website      string   -
email        string   -
image        string|integer  -
"""
TAG_BODY = """
name*        string  -
description  string  -
slug         string  -
"""
CATEGORY_BODY = TAG_BODY + "parent integer -"
BODIES = {
    "events": EVENT_BODY,
    "venues": VENUE_BODY,
    "organizers": ORGANIZER_BODY,
    "categories": CATEGORY_BODY,
    "tags": TAG_BODY,
}
MORE_BODY = {
    "events": {"ticketed", "post_parent", "password", "new_password"},
    "venues": {"geo_lat", "geo_lng"},
}

SETTINGS: list[dict[str, Any]] = [
    {},
    {"api_root": "/wp-json", "aliases": ("/wp-json/tribe/events/v1",)},
    {"base_url": "https://events.example.org"},
    {"base_url": "https://example.org/calendar", "api_root": "/rest"},
    {"timezone": "Asia/Kathmandu", "currency_symbol": "€", "currency_code": "EUR", "max_per_page": 5},
    {"auth": "token"},
]
every_setting = pytest.mark.parametrize("settings", SETTINGS, ids=lambda chosen: ",".join(chosen) or "none")


def rows(table: str) -> dict[str, tuple[str, Any]]:
    """Name (with its star) -> type, default."""
    split = [line.split() for line in table.strip().splitlines()]
    defaults = {"-": None, "True": True, "False": False}
    return {
        name: (kind, defaults[default] if default in defaults else _number(default))
        for name, kind, default in split
    }


def _number(text: str) -> Any:
    return int(text) if text.isdigit() else text


def type_of(entry: Mapping[str, Any]) -> str:
    """The type of a schema as the tables write it."""
    if "x-oneOf" in entry:
        return "|".join(map(type_of, entry["x-oneOf"]))
    if "$ref" in entry:
        return str(entry["$ref"]).rpartition("/")[2]
    return f"[{type_of(entry['items'])}]" if entry["type"] == "array" else str(entry["type"])


def has_type(entry: Mapping[str, Any], wanted: str) -> bool:
    return wanted == "any" or type_of(entry) == wanted


def operations(document: Document) -> dict[Pair, Document]:
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def parameters(operation: Document, where: str) -> dict[str, Document]:
    return {one["name"]: one for one in operation["parameters"] if one["in"] == where}


def body(document: Document, operation: Document) -> Document:
    """The schema of an operation's body."""
    (one,) = (one for one in operation["parameters"] if one["in"] == "body")
    schema: Document = document["definitions"][one["schema"]["$ref"].rpartition("/")[2]]
    return schema


def plural_of(path: str) -> str:
    return path.split("/")[1].partition(".")[0]


async def described(api: Api, **query: Any) -> Document:
    status, document = await api.get("/doc", **query)
    assert status == 200
    return document  # type: ignore[no-any-return]


# The document as a whole


@every_setting
async def test_document_is_valid_and_names_where_it_is_served(
    make_api: MakeApi, settings: dict[str, Any]
) -> None:
    api = await make_api(**settings)
    # The structure is the same in every language; another test says so.
    for language in LANGUAGES[:1] if settings else LANGUAGES:
        document = await described(api, lang=language)
        assert (document["swagger"], list(OpenAPIV2SpecValidator(document).iter_errors())) == ("2.0", [])
        (scheme,) = document["schemes"]
        assert f"{scheme}://{document['host']}{document['basePath']}" == api.store.site.api


@every_setting
async def test_document_and_index_name_exactly_the_routes_of_the_interface(
    make_api: MakeApi, settings: dict[str, Any]
) -> None:
    assert len(PAIRS) == 64
    api = await make_api(**settings)
    assert operations(await described(api)).keys() == PAIRS
    _, index = await api.get("/")
    assert indexed(index).keys() == PAIRS
    assert index["namespace"] == "calendar/events/v1"
    assert {route["namespace"] for route in index["routes"].values()} == {"calendar/events/v1"}


def indexed(index: Document) -> dict[Pair, Document]:
    """The arguments of every method and path in the index."""
    found = {}
    for pattern, route in index["routes"].items():
        path = re.sub(r"\(\?P<(\w+)>[^()]*\)", r"{\1}", pattern.partition("/calendar/events/v1")[2]) or "/"
        assert route["methods"] == [method for one in route["endpoints"] for method in one["methods"]]
        found |= {(method, path): one["args"] for one in route["endpoints"] for method in one["methods"]}
    return found


async def test_index_links_lead_to_its_routes(api: Api) -> None:
    _, index = await api.get("/")
    links = [one["href"] for r in index["routes"].values() for one in r.get("_links", {}).get("self", [])]
    assert len(links) == 10
    for link in links:
        path = link.removeprefix(api.store.site.base_url)
        async with api.client.get(path) as answer:  # one of them does not end
            assert answer.status == 200


async def test_index_and_document_agree_on_every_argument(api: Api) -> None:
    document, arguments = await described(api), indexed((await api.get("/"))[1])
    for pair, operation in operations(document).items():
        told: Document = {}
        if any(one["in"] == "body" for one in operation["parameters"]):
            schema = body(document, operation)
            told |= {
                name: {**entry, "required": name in schema.get("required", [])}
                for name, entry in schema["properties"].items()
            }
        told |= parameters(operation, "query") | parameters(operation, "path")
        assert arguments[pair].keys() == told.keys(), pair
        for name, entry in arguments[pair].items():
            # The index says what the interface says: one type where the document names several, and a default
            # where an update leaves the field alone.
            own = {"type": "x-oneOf" in told[name], "default": "{" in pair[1]}
            for key in (key for key in ("type", "default", "required", "enum") if not own.get(key)):
                assert entry.get(key) == told[name].get(key), (pair, name, key)


async def test_document_does_not_change_with_the_clock(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await described(await make_api())
    later = datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    monkeypatch.setattr(Site, "now", lambda site: later)
    assert await described(await make_api()) == before


# Parameters and fields


async def test_every_query_parameter_of_the_interface_is_documented(api: Api) -> None:
    document = await described(api)
    for (method, path), operation in operations(document).items():
        told = parameters(operation, "query")
        is_feed, base = path.endswith(ENDING), path.removesuffix(ENDING)
        table = rows(QUERIES.get(base, "")) if method in ("GET", "DELETE") else {}
        more = MORE_QUERY.get(base, set()) if method in ("GET", "DELETE") else set()
        is_changes = path in CHANGES_PATHS
        if is_changes:
            table, more = rows(QUERIES["/events"]) | rows(CHANGES_QUERY), {"geoloc_radius"}
        if is_feed or is_changes:
            table = {name: row for name, row in table.items() if name not in NOT_IN_FEEDS}
        is_record = path not in ("/", "/doc", "/openapi.json") and not is_feed and not is_changes
        has_fields = method == "GET" and is_record
        more = more | ({"fields"} if has_fields else set())
        assert told.keys() == table.keys() | more, (method, path)
        for name, (wanted, default) in table.items():
            entry = told[name]
            assert has_type(entry, wanted), (path, name, entry)
            assert (entry.get("default"), entry["required"]) == (default, False), (path, name)


async def test_every_path_parameter_is_documented(api: Api) -> None:
    for (method, path), operation in operations(await described(api)).items():
        told = parameters(operation, "path")
        types = {"id": "integer", "slug": "string", "ending": "string"}
        expected = {name: (types[name], True) for name in re.findall(r"\{(\w+)\}", path)}
        found = {name: (entry["type"], entry["required"]) for name, entry in told.items()}
        assert found == expected, (method, path)


async def test_every_body_field_of_the_interface_is_documented(api: Api) -> None:
    document = await described(api)
    for (method, path), operation in operations(document).items():
        if method in ("GET", "DELETE"):
            assert not parameters(operation, "body")
            continue
        plural, creates = plural_of(path), "{" not in path
        table = rows(BODIES[plural])
        schema = body(document, operation)
        more = MORE_BODY.get(plural, set()) | ({"slug"} if "by-slug" in path else set())
        assert schema["properties"].keys() == {name.rstrip("*") for name in table} | more, (method, path)
        required = {name.rstrip("*") for name in table if name.endswith("*")}
        assert set(schema.get("required", [])) == (required if creates else set()), (method, path)
        for name, (wanted, default) in table.items():
            entry = schema["properties"][name.rstrip("*")]
            # An update leaves alone what it does not name.
            expected = (True, default if creates else None)
            assert (has_type(entry, wanted), entry.get("default")) == expected, (path, name, entry)


async def test_everything_has_a_description(api: Api) -> None:
    document = await described(api)
    for pair, operation in operations(document).items():
        assert operation["summary"], pair
        assert all(answer["description"] for answer in operation["responses"].values()), pair
        assert all(one["in"] == "body" or one["description"] for one in operation["parameters"]), pair
        if any(one["in"] == "body" for one in operation["parameters"]):
            entries = body(document, operation)["properties"].items()
            assert [name for name, entry in entries if not entry.get("description")] == [], pair


# Examples and answers


@every_kind
async def test_documented_example_of_a_body_creates_a_record(api: Api, kind: Kind) -> None:
    document = await described(api)
    create = operations(document)["POST", f"/{kind.plural}"]
    status, created = await api.post(f"/{kind.plural}", body(document, create)["example"])
    assert status == 201, created
    shown = create["responses"]["201"]["examples"]["application/json"]
    assert without_times(shown) == without_times(created)
    listed = operations(document)["GET", f"/{kind.plural}"]["responses"]["200"]
    assert listed["examples"]["application/json"][kind.plural] == [shown]


def without_times(shown: Any) -> Any:
    """What an example shows, but for what depends on when, by whom and in which order it was created."""
    differing = ("date", "date_utc", "modified", "modified_utc", "author", "count")
    ids = ("id", "global_id", "global_id_lineage", "rest_url", "urls")
    if isinstance(shown, dict):
        return {name: without_times(one) for name, one in shown.items() if name not in (*differing, *ids)}
    return [without_times(one) for one in shown] if isinstance(shown, list) else shown


def against(document: Document, schema: Document, value: Any) -> list[str]:
    """What is wrong with a value by a schema of the document."""
    root = _nullable({"definitions": document["definitions"], **schema})
    return [f"{list(error.path)}: {error.message}" for error in Draft4Validator(root).iter_errors(value)]


def _nullable(schema: Any) -> Any:
    """`x-nullable` as JSON Schema says it; objects take no other keys than the named ones."""
    if isinstance(schema, list):
        return [_nullable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    told = {"oneOf" if key == "x-oneOf" else key: _nullable(one) for key, one in schema.items()}
    if told.get("x-nullable") is True and isinstance(told.get("type"), str):
        told["type"] = [told["type"], "null"]
    if told.get("x-nullable") is True and "oneOf" in told:
        told["oneOf"] = [*told["oneOf"], {"type": "null"}]
    if told.get("type") == "object" and told.get("properties"):
        told.setdefault("additionalProperties", False)
    return told


@every_kind
async def test_answers_and_examples_have_the_documented_shape(api: Api, kind: Kind) -> None:
    document = await described(api)
    links = {"organizer": [{"organizer": "Ann"}], "tags": ["red"], "image": "7"} if kind.links else {}
    full = await api.made(kind.plural, **kind.example | links)
    await api.made(kind.plural, **dict(kind.example) | {kind.name_field: "Second"})
    empty = {} if kind.is_post else {"hide_empty": "0"}
    answers = {
        ("POST", f"/{kind.plural}"): full,
        ("GET", f"/{kind.plural}"): (await api.get(f"/{kind.plural}", per_page="1", **empty))[1],
        ("GET", f"/{kind.plural}/{{id}}"): (await api.get(f"/{kind.plural}/{full['id']}"))[1],
        ("DELETE", f"/{kind.plural}/{{id}}"): (await api.delete(f"/{kind.plural}/{full['id']}"))[1],
    }
    problem = (await api.get(f"/{kind.plural}/4711"))[1]
    for pair, operation in operations(document).items():
        for status, answer in operation["responses"].items():
            for example in answer.get("examples", {}).values():
                assert against(document, answer["schema"], example) == [], (pair, status)
        if pair in answers:
            good = next(one for status, one in operation["responses"].items() if status < "300")
            assert against(document, good["schema"], answers[pair]) == [], pair
            assert against(document, operation["responses"]["400"]["schema"], problem) == []


def in_csv(path: str, **values: Any) -> str:
    """A path with the ending that every feed has, and with these values, if there are any."""
    chosen = path.replace("{ending}", "csv")
    return chosen.format(**values) if values else chosen


class Provoker:
    """Makes every operation answer in every way that it can."""

    def __init__(self, api: Api, small: Api, roles: dict[str, Api]) -> None:
        self.api, self.small, self.roles = api, small, roles
        self.made = 0

    async def record(self, kind: Kind, **more: Any) -> Any:
        self.made += 1
        title = f"{kind.example[kind.name_field]} {self.made}"
        return await self.api.made(kind.plural, **dict(kind.example) | {kind.name_field: title} | more)

    async def path(self, path: str, kind: Kind, **more: Any) -> str:
        record = await self.record(kind, **more)
        return in_csv(path, id=record["id"], slug=record["slug"])

    async def statuses(self, method: str, path: str) -> dict[str, int]:
        """What was done -> the status answered."""
        kind = next((kind for kind in KINDS if kind.plural == plural_of(path)), None)
        bad_token = {"headers": {"Authorization": "Bearer wrong"}}
        if kind is None:
            return {
                "good": (await self.api.get(path))[0],
                "bad token": (await self.api.send(method, path, **bad_token))[0],
                "unchanged": await self._unchanged(path),
            }
        path, is_feed = in_csv(path), path.endswith(ENDING)
        if "{" not in path:
            done = await (self._listing(path, is_feed) if method == "GET" else self._creating(path, kind))
        elif method in ("GET", "DELETE"):
            done = await self._plain(method, path, kind)
        else:
            done = await self._updating(method, path, kind)
        if "{" in path:
            done["unknown"] = (await self.api.send(method, path.format(id=4711, slug="nobody")))[0]
            one = await self.path(path, kind)
            done["bad token"] = (await self.api.send(method, one, **bad_token))[0]
            if method != "GET":
                stale = {"headers": {"If-Match": '"99-abc"'}}
                done["stale"] = (await self.api.send(method, one, **stale))[0]
                done["forbidden"] = (await self.roles["viewer"].send(method, one))[0]
            done["good"] = (await self.api.send(method, one))[0]
        else:
            done["bad token"] = (await self.api.send(method, path, **bad_token))[0]
        return done

    async def _listing(self, path: str, is_feed: bool) -> dict[str, int]:
        pages = {"bad value": {"page": "0"}, "beyond the end": {"page": "99"}}
        asked: dict[str, dict[str, str]] = {"good": {}}
        asked |= {"bad value": {"status": "\x00"}} if is_feed else pages
        done = {name: (await self.api.get(path, **query))[0] for name, query in asked.items()}
        if is_feed:
            done["unknown ending"] = (await self.api.get(path.replace(".csv", ".xls")))[0]
        return done | {"unchanged": await self._unchanged(path)}

    async def _unchanged(self, path: str) -> int:
        await self.api.get(path)
        known = {"headers": {"If-None-Match": self.api.headers["ETag"]}}
        return (await self.api.send("GET", path, **known))[0]

    async def _creating(self, path: str, kind: Kind) -> dict[str, int]:
        taken, key = {"If-None-Match": "*"}, {"Idempotency-Key": "once"}
        other = await self.record(kind)
        await self.api.post(path, dict(kind.example) | {kind.name_field: "Once"}, headers=key)
        return {
            "slug taken": (await self.api.post(path, self._same_name(kind, other), headers=taken))[0],
            "another body": (await self.api.post(path, {kind.name_field: "Twice"}, headers=key))[0],
            "good": (await self.api.post(path, dict(kind.example)))[0],
            "missing": (await self.api.post(path, {}))[0],
            "forbidden": (await self.roles["viewer"].post(path, dict(kind.example)))[0],
        } | await self._bodies("POST", path)

    def _same_name(self, kind: Kind, other: Any) -> dict[str, Any]:
        name = other[kind.name_field]
        return {key: value for key, value in kind.example.items() if key != "slug"} | {kind.name_field: name}

    async def _bodies(self, method: str, path: str) -> dict[str, int]:
        plain = {"data": b"x", "headers": {"Content-Type": "text/plain"}}
        return {
            "not json": (await self.api.send(method, path, []))[0],
            "plain text": (await self.api.send(method, path, **plain))[0],
            "too large": (await self.small.send(method, path, {"description": "x" * 2000}))[0],
        }

    async def _plain(self, method: str, path: str, kind: Kind) -> dict[str, int]:
        one = await self.path(path, kind)
        done = {"bad query": (await self.api.send(method, one + "?password=%FF"))[0]}
        if method == "GET":
            done["unchanged"] = await self._unchanged(one)
        if kind.is_post:
            hidden = await self.path(path, kind, status="draft")
            done["not public"] = (await self.roles["public"].send(method, hidden))[0]
            record = await self.record(kind)
            await self.api.delete(f"/{kind.plural}/{record['id']}")
            gone = in_csv(path, id=record["id"], slug=record["slug"] + "__trashed")
            done["in the trash"] = (await self.api.send(method, gone))[0]
        return done

    async def _updating(self, method: str, path: str, kind: Kind) -> dict[str, int]:
        one = await self.path(path, kind)
        done = await self._bodies(method, one)
        done["bad value"] = (await self.api.send(method, one, {kind.name_field: None}))[0]
        if not kind.is_post:
            taken = await self.record(kind)
            done["slug in use"] = (await self.api.send(method, one, {"slug": taken["slug"]}))[0]
        return done


@pytest.mark.parametrize("route", ["/", "/doc", "/openapi.json", *(f"/{kind.plural}" for kind in KINDS)])
async def test_documented_statuses_are_exactly_those_that_can_be_provoked(
    make_api: MakeApi, api: Api, roles: dict[str, Api], route: str
) -> None:
    provoker = Provoker(api, await make_api(max_body=1024), roles)
    for (method, path), operation in operations(await described(api)).items():
        if "/" + plural_of(path) != route:
            continue
        answered = await provoker.statuses(method, path)
        documented = {int(status) for status in operation["responses"]}
        assert set(answered.values()) - documented == set(), (method, path, answered)
        # A limit, a slow body, a bug or a database out of reach cannot be asked for.
        assert documented - set(answered.values()) - {408, 429, 500, 503} == set(), (method, path, answered)
        success = [status for status in documented if status < 300]
        assert success == [answered["good"]] == [201 if (method, path) == ("POST", route) else 200]


async def test_other_methods_are_refused_and_not_documented(api: Api) -> None:
    document = await described(api)
    for path in document["paths"]:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            if (method, path) not in PAIRS:
                status, problem = await api.send(method, in_csv(path, id=1, slug="a"))
                assert (status, problem["code"]) == (405, "rest_method_not_allowed"), (method, path)
                assert method not in api.headers["Allow"]


# Every query parameter does something. The tables must name exactly the documented ones.

Effect = tuple[dict[str, str], dict[str, str], list[str]]
"""A query, what is added to it, and the names of the records that it finds then, in their order."""

ALL = {"starts_after": "1990-01-01"}
PARIS = {"geoloc_lat": "48.85", "geoloc_lng": "2.35"}
EVENT_EFFECTS: dict[str, Effect] = {
    "modified_after": (ALL, {"modified_after": "now +1 day"}, []),
    "page": (ALL | {"per_page": "1"}, {"page": "2"}, ["Gamma"]),
    "per_page": (ALL, {"per_page": "2"}, ["Alpha", "Gamma"]),
    "start_date": (ALL, {"start_date": "2027-03-02"}, ["Beta"]),
    "end_date": (ALL, {"end_date": "2027-03-01"}, ["Alpha", "Gamma"]),
    "starts_before": (ALL, {"starts_before": "2027-03-01"}, ["Alpha", "Gamma"]),
    "starts_after": ({"ends_after": "1990-01-01"}, {"starts_after": "2027-03-01"}, ["Beta"]),
    "ends_before": (ALL, {"ends_before": "2027-03-01"}, ["Alpha", "Gamma"]),
    "ends_after": (ALL, {"ends_after": "2027-03-01"}, ["Beta"]),
    "strict_dates": ({"starts_after": "2027-03-01 12:00:00"}, {"strict_dates": "1"}, ["Gamma", "Beta"]),
    "search": (ALL, {"search": "lph"}, ["Alpha"]),
    "categories": (ALL, {"categories": "music"}, ["Alpha"]),
    "tags": (ALL, {"tags": "red"}, ["Alpha", "Beta"]),
    "venue": (ALL, {"venue": "{Hall}"}, ["Alpha"]),
    "organizer": (ALL, {"organizer": "{Ann}"}, ["Beta"]),
    "featured": (ALL, {"featured": "true"}, ["Alpha"]),
    "status": (ALL, {"status": "draft"}, ["Gamma"]),
    "geoloc": (ALL, {"geoloc": "false"}, ["Gamma"]),
    "geoloc_lat": (ALL | PARIS | {"geoloc_lat": "40"}, {"geoloc_lat": "48.85"}, ["Alpha"]),
    "geoloc_lng": (ALL | PARIS | {"geoloc_lng": "40"}, {"geoloc_lng": "2.35"}, ["Alpha"]),
    "geoloc_radius": (ALL | PARIS, {"geoloc_radius": "9000"}, ["Alpha", "Beta"]),
    "include": (ALL, {"include": "{Beta},{Gamma}"}, ["Gamma", "Beta"]),
    "post_parent": (ALL, {"post_parent": "{Alpha}"}, ["Gamma"]),
    "ticketed": (ALL, {"ticketed": "true"}, ["Beta"]),
    "orderby": (ALL, {"orderby": "title"}, ["Alpha", "Beta", "Gamma"]),
    "order": (ALL, {"order": "desc"}, ["Beta", "Gamma", "Alpha"]),
}
LINKED_EFFECTS: dict[str, Effect] = {
    "modified_after": ({}, {"modified_after": "now +1 day"}, []),
    "page": ({"per_page": "1"}, {"page": "2"}, ["Alpha"]),
    "per_page": ({}, {"per_page": "1"}, ["Gamma"]),
    "search": ({}, {"search": "bet"}, ["Beta"]),
    "event": ({}, {"event": "{Past}"}, ["Beta"]),
    "has_events": ({}, {"has_events": "1"}, ["Alpha", "Beta"]),
    "only_with_upcoming": ({}, {"only_with_upcoming": "1"}, ["Alpha"]),
    "status": ({}, {"status": "draft"}, ["Gamma"]),
    "orderby": ({}, {"orderby": "title"}, ["Alpha", "Beta", "Gamma"]),
    "order": ({}, {"order": "asc"}, ["Beta", "Alpha", "Gamma"]),
}
EVERY = {"hide_empty": "0"}
TAG_EFFECTS: dict[str, Effect] = {
    "modified_after": (EVERY, {"modified_after": "now +1 day"}, []),
    "page": (EVERY | {"per_page": "1"}, {"page": "2"}, ["Beta"]),
    "per_page": (EVERY, {"per_page": "1"}, ["Alpha"]),
    "search": (EVERY, {"search": "amm"}, ["Gamma"]),
    "exclude": (EVERY, {"exclude": "{Alpha},{Gamma}"}, ["Beta"]),
    "include": (EVERY, {"include": "{Alpha},{Gamma}"}, ["Alpha", "Gamma"]),
    "order": (EVERY, {"order": "desc"}, ["Gamma", "Beta", "Alpha"]),
    "orderby": (EVERY, {"orderby": "count"}, ["Alpha", "Gamma", "Beta"]),
    "hide_empty": ({}, {"hide_empty": "0"}, ["Alpha", "Beta", "Gamma"]),
    "post": (EVERY, {"post": "{First}"}, ["Beta"]),
    "event": (EVERY, {"post": "{First}", "event": "{Second}"}, ["Beta", "Gamma"]),
    "slug": (EVERY, {"slug": "beta"}, ["Beta"]),
}
CATEGORY_EFFECTS = TAG_EFFECTS | {"parent": (EVERY, {"parent": "{Gamma}"}, ["Beta"])}


async def some_events(api: Api) -> dict[str, int]:
    """Alpha and Gamma on the first day, Beta from the second on."""
    hall = await api.made("venues", venue="Hall", geo_lat=48.86, geo_lng=2.35)
    far = await api.made("venues", venue="Far", geo_lat=40.7, geo_lng=-74.0)
    ann = await api.made("organizers", organizer="Ann")
    first = {"start_date": "2027-03-01 10:00:00", "end_date": "2027-03-01 12:00:00"}
    evening = {"start_date": "2027-03-01 18:00:00", "end_date": "2027-03-01 20:00:00"}
    long = {"start_date": "2027-03-02 10:00:00", "end_date": "2027-03-05 12:00:00"}
    alpha = await api.event(
        "Alpha", **first, venue=hall["id"], categories=["Music"], tags=["red"], featured=True
    )
    beta = await api.event("Beta", **long, venue=far["id"], organizer=ann["id"], tags=["red"], ticketed=True)
    gamma = await api.event("Gamma", **evening, status="draft", post_parent=alpha["id"])
    ids = {"Alpha": alpha, "Beta": beta, "Gamma": gamma, "Hall": hall, "Ann": ann}
    return {name: record["id"] for name, record in ids.items()}


async def some_linked(api: Api, kind: Kind) -> dict[str, int]:
    """Gamma is the newest and unused, Alpha has an event to come, Beta one that is over."""
    ids = {}
    for name, day, status in (("Beta", 1, "publish"), ("Alpha", 2, "publish"), ("Gamma", 3, "draft")):
        fields = {kind.name_field: name, "date": f"2020-01-0{day}", "status": status}
        ids[name] = (await api.made(kind.plural, **fields))["id"]
    past = {"start_date": "2001-01-01", "end_date": "2001-01-02"}
    coming = {"start_date": "tomorrow", "end_date": "tomorrow +1 day"}
    ids["Past"] = (await api.event(**past, **{kind.name: ids["Beta"]}))["id"]
    ids["Coming"] = (await api.event(**coming, **{kind.name: ids["Alpha"]}))["id"]
    return ids


async def some_terms(api: Api, kind: Kind) -> dict[str, int]:
    """Gamma has one event, Beta two, Alpha none; a category Beta is below Gamma."""
    ids: dict[str, int] = {}
    for name in ("Gamma", "Beta", "Alpha"):
        parent = {"parent": ids["Gamma"]} if name == "Beta" and kind.name == "category" else {}
        ids[name] = (await api.made(kind.plural, name=name, **parent))["id"]
    ids["First"] = (await api.event("First", **{kind.plural: [ids["Beta"]]}))["id"]
    ids["Second"] = (await api.event("Second", **{kind.plural: [ids["Beta"], ids["Gamma"]]}))["id"]
    return ids


async def check_effects(api: Api, kind: Kind, effects: dict[str, Effect], ids: dict[str, int]) -> None:
    documented = parameters(operations(await described(api))["GET", f"/{kind.plural}"], "query")
    assert effects.keys() | {"fields"} == documented.keys()  # tests/test_selection.py has that one

    async def found(query: dict[str, str]) -> list[str]:
        filled = {name: value.format(**ids) for name, value in query.items()}
        status, page = await api.get(f"/{kind.plural}", **filled)
        assert status == 200, (query, page)
        return [record[kind.name_field] for record in page[kind.plural]]

    for name, (query, added, expected) in effects.items():
        assert name in added
        without = await found({key: value for key, value in (query | added).items() if key != name} | query)
        assert without != expected, f"{name} changes nothing"
        assert await found(query | added) == expected, name


async def test_every_parameter_of_the_event_list_changes_it(api: Api) -> None:
    await check_effects(api, KINDS[0], EVENT_EFFECTS, await some_events(api))


@pytest.mark.parametrize("kind", POSTS[1:], ids=named)
async def test_every_parameter_of_the_linked_lists_changes_them(api: Api, kind: Kind) -> None:
    await check_effects(api, kind, LINKED_EFFECTS, await some_linked(api, kind))


@pytest.mark.parametrize("kind", TERMS, ids=named)
async def test_every_parameter_of_the_term_lists_changes_them(api: Api, kind: Kind) -> None:
    effects = CATEGORY_EFFECTS if kind.name == "category" else TAG_EFFECTS
    await check_effects(api, kind, effects, await some_terms(api, kind))


@pytest.mark.parametrize("address", ["{id}", "by-slug/{slug}"])
async def test_password_parameter_opens_a_protected_event(api: Api, address: str) -> None:
    path = "/events/" + address.format(**await api.event(password="secret"))
    for method in ("GET", "DELETE"):
        for wrong in ({}, {"password": "guess"}):
            status, problem = await api.send(method, path, params=wrong)
            assert (status, problem["code"]) == (403, "event-password-protected")
        assert (await api.send(method, path, params={"password": "secret"}))[0] == 200


# Every body field does something. The tables must name exactly the documented ones.

OTHER = object()
"""Stands for the ID of another record of the same kind."""
PAGE = "https://example.org/page"
POST_CHANGES: dict[str, tuple[Any, Document]] = {
    "author": (7, {"author": 7}),
    "date": ("2020-02-03 04:05:06", {"date": "2020-02-03 04:05:06", "date_utc": "2020-02-02 22:20:06"}),
    "date_utc": ("2021-02-03 04:05:06", {"date": "2021-02-03 09:50:06", "date_utc": "2021-02-03 04:05:06"}),
    "description": ("<p>Words & more</p>", {"description": "<p>Words & more</p>"}),
    "status": ("private", {"status": "private"}),
    "image": (PAGE + ".png", {"image": {"id": None, "url": PAGE + ".png"}}),
}
EVENT_CHANGES: dict[str, tuple[Any, Document]] = POST_CHANGES | {
    "title": ("Renamed", {"title": "Renamed"}),
    "start_date": ("2027-05-01 08:00:00", {"start_date": "2027-05-01 08:00:00"}),
    "end_date": ("2027-07-01 08:00:00", {"end_date": "2027-07-01 08:00:00"}),
    "slug": ("Fresh Slug", {"slug": "fresh-slug"}),
    "excerpt": ("Short", {"excerpt": "Short"}),
    "timezone": ("Asia/Tokyo", {"timezone": "Asia/Tokyo", "timezone_abbr": "JST"}),
    "all_day": (True, {"all_day": True}),
    "cost": ("$20", {"cost": "$20", "cost_details": {"values": ["20"]}}),
    "website": (PAGE, {"website": PAGE}),
    "show_map": (False, {"show_map": False}),
    "show_map_link": (False, {"show_map_link": False}),
    "hide_from_listings": (True, {"hide_from_listings": True}),
    "sticky": (True, {"sticky": True}),
    "featured": (True, {"featured": True}),
    "categories": (["Fairs"], {"categories": [{"name": "Fairs"}]}),
    "tags": (["red", "blue"], {"tags": [{"name": "blue"}, {"name": "red"}]}),
    "venue": ({"venue": "Elsewhere"}, {"venue": {"venue": "Elsewhere"}}),
    "organizer": ([{"organizer": "Ann"}], {"organizer": [{"organizer": "Ann"}]}),
    "ticketed": (True, {"ticketed": True}),
    "post_parent": (OTHER, {"post_parent": OTHER}),
}
ACCESS_FIELDS = {"password", "new_password"}
VENUE_CHANGES: dict[str, tuple[Any, Document]] = POST_CHANGES | {
    "venue": ("Renamed", {"venue": "Renamed"}),
    "show_map": ("false", {"show_map": False}),
    "show_map_link": ("0", {"show_map_link": False}),
    "address": ("2 Side Street", {"address": "2 Side Street"}),
    "city": ("Oslo", {"city": "Oslo"}),
    "country": ("Norway", {"country": "Norway"}),
    "province": ("Province", {"province": "Province", "stateprovince": "Province"}),
    "state": ("State", {"state": "State", "stateprovince": "State"}),
    "stateprovince": ("Both", {"stateprovince": "Both"}),
    "zip": ("0150", {"zip": "0150"}),
    "phone": ("+47 1", {"phone": "+47 1"}),
    "website": (PAGE, {"website": PAGE}),
    "geo_lat": (59.9, {"geo_lat": 59.9}),
    "geo_lng": (10.7, {"geo_lng": 10.7}),
}
ORGANIZER_CHANGES: dict[str, tuple[Any, Document]] = POST_CHANGES | {
    "organizer": ("Renamed", {"organizer": "Renamed"}),
    "phone": ("+47 1", {"phone": "+47 1"}),
    "website": (PAGE, {"website": PAGE}),
    "email": ("ann@example.org", {"email": "ann@example.org"}),
}
TAG_CHANGES: dict[str, tuple[Any, Document]] = {
    "name": ("Renamed", {"name": "Renamed"}),
    "description": ("Words", {"description": "Words"}),
    "slug": ("Fresh Slug", {"slug": "fresh-slug"}),
}
CHANGES: dict[str, dict[str, tuple[Any, Document]]] = {
    "events": EVENT_CHANGES,
    "venues": VENUE_CHANGES,
    "organizers": ORGANIZER_CHANGES,
    "categories": TAG_CHANGES | {"parent": (OTHER, {"parent": OTHER})},
    "tags": TAG_CHANGES,
}
# One coordinate is never sent alone.
TOGETHER = {"geo_lat": {"geo_lng": 5.0}, "geo_lng": {"geo_lat": 5.0}}
ITEM_ROUTES = sorted(path for method, path in PAIRS if method == "PATCH")


def contains(shown: Any, expected: Any) -> bool:
    """Whether everything expected is shown; more keys may be."""
    if isinstance(expected, dict):
        return isinstance(shown, dict) and all(contains(shown.get(k), v) for k, v in expected.items())
    if isinstance(expected, list):
        return len(shown) == len(expected) and all(map(contains, shown, expected))
    return bool(shown == expected and type(shown) is type(expected))


@pytest.mark.parametrize("route", ITEM_ROUTES)
async def test_every_body_field_changes_the_record(make_api: MakeApi, route: str) -> None:
    api = await make_api(timezone="Asia/Kathmandu")
    document, plural = await described(api), plural_of(route)
    kind = next(kind for kind in KINDS if kind.plural == plural)
    changes = dict(CHANGES[plural])
    if "by-slug" in route:
        changes["slug"] = TAG_CHANGES["slug"]
    documented = body(document, operations(document)["PATCH", route])["properties"].keys()
    assert documented == changes.keys() | (ACCESS_FIELDS if plural == "events" else set())
    other = (await api.made(plural, **dict(kind.example) | {kind.name_field: "Other"}))["id"]
    for number, (name, (value, expected)) in enumerate(changes.items()):
        created = await api.made(plural, **dict(kind.example) | {kind.name_field: f"Record {number}"})
        sent = other if value is OTHER else value
        wanted = {key: other if one is OTHER else one for key, one in expected.items()}
        assert not contains(created, wanted), name
        path = route.format(id=created["id"], slug=created["slug"])
        method = ("POST", "PUT", "PATCH")[number % 3]
        status, updated = await api.send(method, path, {name: sent} | TOGETHER.get(name, {}))
        assert (status, contains(updated, wanted)) == (200, True), (name, updated)
        read = (await api.get(f"/{plural}/{created['id']}"))[1]
        assert contains(read, wanted), (name, read)


@pytest.mark.parametrize("address", ["{id}", "by-slug/{slug}"])
async def test_password_fields_change_who_may_read_and_write(api: Api, address: str) -> None:
    path = "/events/" + address.format(**await api.event(password="old"))
    assert (await api.patch(path, {"sticky": True}))[0] == 403
    assert (await api.patch(path, {"sticky": True, "password": "old"}))[0] == 200
    assert (await api.patch(path, {"password": "old", "new_password": "new"}))[0] == 200
    assert (await api.get(path, password="old"))[0] == 403
    assert (await api.get(path, password="new"))[0] == 200
    assert (await api.patch(path, {"password": "new", "new_password": ""}))[0] == 200
    assert (await api.get(path))[0] == 200


# The page


class References(HTMLParser):
    """Collects what a page refers to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("src", "href", "action", "data") and value]


@every_setting
async def test_page_needs_nothing_from_elsewhere(make_api: MakeApi, settings: dict[str, Any]) -> None:
    api = await make_api(**settings)
    types = {"js": "text/javascript", "css": "text/css", "png": "image/png"}
    status, page = await api.get("//docs")
    assert (status, api.headers["Content-Type"].partition(";")[0]) == (200, "text/html")
    assert "default-src 'none'" in api.headers["Content-Security-Policy"]
    assert "//" not in page
    references = References(page).found
    assert len(references) == 5
    for reference in references:
        async with api.client.get(urljoin("/docs", reference)) as answer:
            assert (answer.status, answer.content_type) == (200, types[reference.rpartition(".")[2]])
            assert await answer.read()
    (namespace,) = re.findall(r'data-namespace="([^"]*)"', page)
    status, document = await api.get("/" + urljoin("/docs", f"{namespace}/openapi.json"))
    assert (status, document["openapi"]) == (200, "3.1.0")


async def test_page_does_not_serve_other_files(api: Api) -> None:
    for name in ("nothing.js", "index.html", "..%2Fpages.py", "%2e%2e/__init__.py", "swagger-ui.js.map"):
        assert (await api.get(f"//docs/{name}"))[0] == 404


async def test_the_calendar_leads_to_the_page(api: Api) -> None:
    status, text = await api.get("//")
    assert (status, 'href="/docs"' in text) == (200, True)
