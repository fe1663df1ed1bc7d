"""Hostile requests: none ends in a server error, each refusal says what is wrong, nothing is half done."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from schemas import BY_NAME, EVENT, KINDS, Kind
from schemas.fields import (
    Choice,
    CostField,
    Flag,
    Many,
    Number,
    Picture,
    Status,
    Statuses,
    When,
    Whole,
    Zoned,
)
from schemas.links import PostLinks, TermLinks
from schemas.text_fields import FreeText, Html, MailAddress, Name, Numeral, PlainText, SlugText, WebAddress
from service.http import rate_limits
from tests.conftest import Api, MakeApi
from tests.samples import POSTS, TERMS, TIMES, named

every_kind = pytest.mark.parametrize("kind", KINDS, ids=named)
every_post = pytest.mark.parametrize("kind", POSTS, ids=named)

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


class Answer(NamedTuple):
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error, the empty text of anything else."""
        if self.headers.get("content-type", "").startswith(JSON) and self.status >= 400:
            return str(self.json["code"])
        return ""


async def talk(api: Api, message: bytes) -> Answer:
    """Sends bytes as they are: a client library would put right what is meant to be wrong."""
    reader, writer = await asyncio.open_connection(api.client.host, api.client.port)
    try:
        writer.write(message)
        received = await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    assert re.fullmatch(r"HTTP/1\.[01] [0-9]{3} .*", first), (message[:200], received[:200])
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


async def ask(
    api: Api, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> Answer:
    """One request whose path and headers are sent as they are; `//x` is meant from the root."""
    address = path[1:] if path.startswith("//") else api.store.site.namespace + path
    sent = {"Host": "localhost", "Connection": "close"} | (headers or {})
    if body:
        sent = {"Content-Type": JSON, "Content-Length": str(len(body))} | sent
    lines = [f"{method} {address} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return await talk(api, head.encode("utf-8", "surrogateescape") + body)


def listed(wrong: list[Any]) -> str:
    """One case a line."""
    return "\n" + "\n".join(str(case)[:600] for case in wrong)


def faults(answer: Answer, *names: str) -> str:
    """What is wrong with an answer to a bad request; the empty text for a good one."""
    if answer.status >= 500:
        return f"{answer.status} {answer.body[:200]!r}"
    if answer.status < 400:
        return ""
    try:
        body = answer.json
    except ValueError:
        return f"{answer.status} without JSON: {answer.body[:200]!r}"
    return shape_faults(answer.status, body, *names)


def shape_faults(status: int, body: Any, *names: str) -> str:
    if not isinstance(body, dict) or body.keys() != {"code", "message", "data"}:
        return f"{status} with another shape: {str(body)[:200]}"
    if not (isinstance(body["code"], str) and isinstance(body["message"], str) and body["message"]):
        return f"{status} without code or message: {body}"
    if body["data"].get("status") != status or body["data"].keys() - {
        "status",
        "params",
        "term_id",
        "details",
    }:
        return f"{status} with odd data: {body['data']}"
    if status == 400 and names and not set(names) & set(body["data"].get("params", ())):
        return f"400 does not name {' or '.join(names)}: {body}"
    return ""


async def counts(api: Api) -> dict[str, int]:
    """How many records of each kind there are."""
    numbers = await asyncio.gather(
        *(api.store.database[kind.plural].estimated_document_count() for kind in KINDS)
    )
    return dict(zip((kind.plural for kind in KINDS), numbers, strict=True))


# Bodies, field by field

# What is sent -> the value; a name starts with `!` where the value is valid for no field at all.
VALUES: dict[str, Any] = {
    "whole": 7,
    "decimal": 1.9,
    "true": True,
    "false": False,
    "list": ["x"],
    "!nested": [[["x"]]],
    "!object": {"a": 1},
    "!$gt": {"$gt": ""},
    "!$ne": {"$ne": None},
    "!$where": {"$where": "sleep(1000)"},
    "!dotted": {"a.b": "c"},
    "!list of $gt": [{"$gt": ""}],
    "!id of $gt": {"id": {"$gt": 0}},
    "!id of true": {"id": True},
    "!long": "x" * 200_001,
    "!NUL": "a\0b",
    "!list of NUL": ["a\0b"],
    "2**63": 2**63,
    "2**64": 2**64,
    "-1": -1,
    "1_000": "1_000",
    " 7 ": " 7 ",
    "Arabic": "٣",
    "word": "x",
    "$word": "$where",
    "empty": "",
    "empty list": [],
    "null": None,
}
ANY_TEXT = {"1_000", " 7 ", "Arabic", "word", "$word"}
EMPTY = {"empty", "null"}
# Field -> what it takes of these values, on creation and on update; everything else is refused. What is
# left out here and in REFUSED may be either.
TAKEN: dict[type[Any], set[str]] = {
    FreeText: ANY_TEXT | EMPTY,
    PlainText: ANY_TEXT | EMPTY,
    Html: ANY_TEXT | EMPTY,
    Name: ANY_TEXT,
    Numeral: ANY_TEXT | EMPTY | {"whole", "2**63", "-1"},
    SlugText: ANY_TEXT | EMPTY,
    Whole: {"whole", "null"},
    When: {"whole", "-1", "null"},
    Flag: {"true", "false", "null"},
    Number: {"whole", "decimal", "-1", "null"},
    WebAddress: EMPTY,
    MailAddress: EMPTY,
    Status: {"1_000", "word", "null"},
    Picture: {"whole", "false"} | EMPTY,
    Zoned: EMPTY,
    CostField: ANY_TEXT | EMPTY | {"whole", "decimal", "2**63", "2**64", "-1", "list", "empty list"},
    TermLinks: ANY_TEXT - {" 7 "} | EMPTY | {"list", "empty list"},
    PostLinks: EMPTY | {"empty list"},
}
# (kind, field) -> what it does not take although its type does.
BUT: dict[tuple[str, str], set[str]] = {
    ("event", "title"): set(),
    ("event", "start_date"): {"null"},
    ("event", "end_date"): {"whole", "-1", "null"},
    ("event", "post_parent"): {"whole"},
    ("category", "parent"): {"whole"},
}
FIELDS = [(kind, name) for kind in KINDS for name in kind.body_schema().fields]
every_field = pytest.mark.parametrize(
    ("kind", "name"), FIELDS, ids=[f"{kind.name}-{name}" for kind, name in FIELDS]
)


def body_with(kind: Kind, name: str, value: Any, *, whole: bool = True) -> dict[str, Any]:
    """A body whose only bad field, if any, is this one."""
    pair = {"geo_lat": "geo_lng", "geo_lng": "geo_lat"}
    base = {key: one for key, one in kind.example.items() if key not in kind.links} if whole else {}
    other = {pair[name]: None if value in ("", None) else 1} if name in pair else {}
    return base | other | {name: value}


def wrong_status(kind: Kind, name: str, label: str, status: int, good: int) -> str:
    field = kind.body_schema().fields[name]
    taken = TAKEN[type(field)] - BUT.get((kind.name, name), set())
    if label in taken and status != good:
        return f"{status}, should be {good}"
    if label not in taken and label not in ("empty", "false") and status != 400:
        return f"{status}, should be 400"
    return ""


async def unreadable(api: Api, kind: Kind, shown: Any, name: str, value: Any) -> str:
    """What is wrong with reading a record back that was answered so."""
    password = {"password": value} if "password" in name and value and isinstance(value, str) else {}
    status, read = await api.get(f"/{kind.plural}/{shown['id']}", **password)
    if isinstance(read, dict):
        read.pop("json_ld", None)
    return "" if (status, read) == (200, shown) else f"reads back as {status} {str(read)[:300]}"


@pytest.mark.slow
@every_field
async def test_field_takes_or_refuses_any_value_on_creation(api: Api, kind: Kind, name: str) -> None:
    wrong: list[Any] = []
    for label, value in VALUES.items():
        before = await counts(api)
        status, body = await api.post(f"/{kind.plural}", body_with(kind, name, value))
        if status >= 300:
            fault = f"{status} {body}" if status >= 500 else shape_faults(status, body, name)
            fault = fault or ("" if await counts(api) == before else "something was written")
        else:
            fault = await unreadable(api, kind, body, name, value)
        if kind in TERMS and status == 201:
            await api.delete(f"/{kind.plural}/{body['id']}")
        if fault := fault or wrong_status(kind, name, label, status, 201):
            wrong.append((label, fault))
    assert not wrong, listed(wrong)


@pytest.mark.slow
@every_field
async def test_field_takes_or_refuses_any_value_on_update(api: Api, kind: Kind, name: str) -> None:
    record = await api.made(kind.plural, **kind.example)
    wrong: list[Any] = []
    for label, value in VALUES.items():
        if "password" in name:
            record = await api.made(kind.plural, **dict(kind.example))
        path = f"/{kind.plural}/{record['id']}"
        before, (_, old) = await counts(api), await api.get(path)
        status, body = await api.patch(path, body_with(kind, name, value, whole=False))
        if status >= 300:
            fault = f"{status} {body}" if status >= 500 else shape_faults(status, body, name)
            fault = fault or (
                "" if (await counts(api), (await api.get(path))[1]) == (before, old) else "written"
            )
        else:
            fault = await unreadable(api, kind, body, "" if name == "password" else name, value)
        if fault := fault or wrong_status(kind, name, label, status, 200):
            wrong.append((label, fault))
    assert not wrong, listed(wrong)


@every_kind
async def test_half_a_character_is_refused(api: Api, kind: Kind) -> None:
    wrong: list[Any] = []
    for name in kind.body_schema().fields:
        marked = json.dumps(body_with(kind, name, "@@"))
        for text in (r'"\ud800"', r'"a\udfffb"', r'["\ud83c"]', r'{"id": "\ud800"}', r'{"\ud800": 1}'):
            for path in (f"/{kind.plural}", f"/{kind.plural}/1"):
                answer = await ask(api, "POST", path, marked.replace('"@@"', text).encode())
                if (answer.status, answer.code) != (400, "rest_invalid_json") or faults(answer):
                    wrong.append((path, name, text, answer.status, answer.body[:200]))
    assert not wrong, listed(wrong)
    assert set((await counts(api)).values()) == {0}


@every_kind
async def test_empty_text_clears_an_optional_field(api: Api, kind: Kind) -> None:
    wrong: list[Any] = []
    path = f"/{kind.plural}/{(await api.made(kind.plural, **kind.example))['id']}"
    for name, field in kind.body_schema().fields.items():
        expected = 400 if field.required else 200
        status, body = await api.patch(path, body_with(kind, name, "", whole=False))
        wrong += [] if status == expected else [("JSON", name, status, body)]
        form = f"{name}=" + {"geo_lat": "&geo_lng=", "geo_lng": "&geo_lat="}.get(name, "")
        answer = await ask(api, "PATCH", path, form.encode(), {"Content-Type": FORM})
        wrong += [] if answer.status == expected else [("form", name, answer.status, answer.body[:200])]
    assert not wrong, listed(wrong)


@every_kind
async def test_all_bad_fields_are_named_at_once(api: Api, kind: Kind) -> None:
    names = sorted(kind.body_schema().fields)
    status, problem = await api.post(f"/{kind.plural}", {name: {"$gt": ""} for name in names})
    assert (status, problem["code"], sorted(problem["data"]["params"])) == (400, "rest_invalid_param", names)
    assert set((await counts(api)).values()) == {0}


@every_kind
async def test_own_and_unknown_fields_are_ignored(api: Api, kind: Kind) -> None:
    own = {"_id": 5, "id": 6, "version": {"$gt": 0}, "events": {"publish": 9}, "tok": [1], "text": "x"}
    own |= {"$set": {"status": "x"}, "a.b": 1, "ancestors": [1], "owes": "x", "key": 7, "claim": 8, "": 1}
    created = await api.made(kind.plural, **dict(kind.example) | own)
    stored = await api.store.database[kind.plural].find_one({"_id": created["id"]})
    assert stored is not None
    assert not stored.keys() & {"id", "$set", "a.b", ""}
    assert (stored["version"], stored.get("events", {}).get("publish", 0)) == (1, 0)
    status, updated = await api.patch(f"/{kind.plural}/{created['id']}", own | {"description": "New"})
    assert (status, updated["id"], updated["description"]) == (200, created["id"], "New")
    assert (await api.get(f"/{kind.plural}/{created['id']}"))[0] == 200


@every_kind
async def test_record_sent_back_whole_is_taken_and_stays(api: Api, kind: Kind) -> None:
    created = await api.made(kind.plural, **dict(kind.example) | {"description": "Words"})
    _, shown = await api.get(f"/{kind.plural}/{created['id']}")
    status, same = await api.send("PUT", f"/{kind.plural}/{created['id']}", shown)
    changing = {"modified", "modified_utc", "json_ld"}
    assert status == 200, same
    assert {k: v for k, v in same.items() if k not in changing} == {
        k: v for k, v in shown.items() if k not in changing
    }


# Text that only looks dangerous

TEXTS = [
    "🎉👩‍👩‍👧‍👦🇫🇷 party",
    "مرحبا بالعالم \u202eRTL\u202c",
    "e\u0301 is not é, ﬁ is not fi, İ ı ſ ß K",
    "first\r\nsecond\nthird\rfourth\ttab",
    "\"double\" 'single' `back` \\slash\\ \\u0000 \\x00",
    "I <3 this & that &amp; &lt;b&gt; &#0;",
    "$where",
    "$$ROOT",
    "a.b",
    "$a.$b",
    '{"$ne": null}',
    "'; DROP TABLE events; --",
    "%00 %ff %2e%2e/ ../../etc/passwd",
    "{0} {kind} {name!r} %s %(x)s",
    "\u0001\u0008\u001f\u007f control",
    "\ufeffBOM \u200bzero\u2028line\u2029paragraph",
    "\ufffe\uffff\U0010ffff noncharacters",
    "ﷺ" * 20,
    "__proto__ constructor null undefined NaN true",
]


@every_kind
@pytest.mark.parametrize("way", ["JSON", "escaped JSON", "form"])
async def test_odd_text_comes_back_exactly(api: Api, kind: Kind, way: str) -> None:
    plain = {
        name
        for name, field in kind.body_schema().fields.items()
        if type(field) in (PlainText, Html, Name, Numeral)
    }
    wrong: list[Any] = []
    for number, text in enumerate(TEXTS):
        words = text.strip()
        fields: dict[str, str] = dict(TIMES if kind is EVENT else {}) | dict.fromkeys(plain, words)
        fields[kind.name_field] = f"{words} {number}"
        if way == "form":
            body = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items()).encode()
        else:
            body = json.dumps(fields, ensure_ascii=way != "JSON").encode()
        headers = {"Content-Type": FORM if way == "form" else JSON}
        answer = await ask(api, "POST", f"/{kind.plural}", body, headers)
        if answer.status != 201:
            wrong.append((text, answer.status, answer.body[:200]))
            continue
        _, read = await api.get(f"/{kind.plural}/{answer.json['id']}")
        wrong += [(text, name, read[name]) for name in plain if read[name] != fields[name]]
        status, page = await api.get(f"/{kind.plural}", search=f'"{words}"', **hide(kind))
        wrong += [] if status == 200 else [(text, status, page)]
    assert not wrong, listed(wrong)


def hide(kind: Kind) -> dict[str, str]:
    return {} if kind.is_post else {"hide_empty": "0"}


async def test_cost_of_odd_text_comes_back_exactly(api: Api) -> None:
    for text in TEXTS[:-2]:
        assert (await api.event(cost=text))["cost"] == text


# Query strings

# What is sent -> how it is written in the address.
QUERIES: dict[str, str] = {
    "operator": "{}=$gt",
    "$ne bracket": "{}[$ne]=x",
    "$regex bracket": "{}[$regex]=.*",
    "nested bracket": "{}[a][b][c]=x",
    "open bracket": "{}[=x",
    "closed bracket": "{}]=x",
    "encoded bracket": "{}%5B%24gt%5D=",
    "twice": "{0}=x&{0}=y",
    "catastrophic": "{}=(a%2B)%2B$",
    "anything": "{}=.*",
    "NUL": "{}=%00",
    "inner NUL": "{}=a%00b",
    "not UTF-8": "{}=%ff",
    "surrogate": "{}=%ED%A0%80",
    "overlong": "{}=%C0%80",
    "half an escape": "{}=%",
    "odd escape": "{}=%zz%1",
    "7 kB": "{}=" + "a" * 7000,
    "10**12": "{}=1000000000000",
    "2**63-1": "{}=" + str(2**63 - 1),
    "2**63": "{}=" + str(2**63),
    "2**64": "{}=" + str(2**64),
    "-1": "{}=-1",
    "1e1": "{}=1e1",
    "1e999": "{}=1e999",
    "NaN": "{}=NaN",
    "Infinity": "{}=-Infinity",
    "0x10": "{}=0x10",
    "1_000": "{}=1_000",
    "blanks": "{}=%207%20",
    "Arabic": "{}=%D9%A3",
    "commas": "{}=,,,",
    "comma in front": "{}=,x",
    "slash": "{}=a%2Fb",
    "1,500 ids": "{}=" + ",".join(map(str, range(1, 1500))),
    "quote": "{}=%22%27%60%5C",
    "empty": "{}=",
    "bare": "{}",
    "new line": "{}=a%0D%0AX-Evil:%201",
    "template": "{}=%7B0%7D%7Bkind%7D%25s",
}
# Type -> what it takes of these; everything else is refused.
READ: dict[type[Any], set[str]] = {
    Whole: {"10**12", "2**63-1"},
    When: set(),
    Flag: set(),
    Number: {"-1", "1e1"},
    Choice: set(),
}
NOT_SENT = {"empty", "bare", "closed bracket"}
PARAMETERS = [(kind, name) for kind in KINDS for name in kind.query_schema().fields]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"), PARAMETERS, ids=[f"{kind.name}-{name}" for kind, name in PARAMETERS]
)
async def test_parameter_takes_or_refuses_any_value(api: Api, kind: Kind, name: str) -> None:
    await api.made(kind.plural, **kind.example)
    field = kind.query_schema().fields[name]
    pair = {"geoloc_lat": "&geoloc_lng=1", "geoloc_lng": "&geoloc_lat=1"}.get(name, "")
    wrong: list[Any] = []
    for label, query in QUERIES.items():
        sent = query.format(name) if "{}" in query or "{0}" in query else query
        answer = await ask(api, "GET", f"/{kind.plural}?{sent}{'' if label in NOT_SENT else pair}")
        fault = faults(answer, name, "query")
        if not fault and answer.status not in (200, 400) and (answer.status, name) != (404, "page"):
            fault = f"answers {answer.status}"
        if not fault and label in NOT_SENT and answer.status != 200:
            fault = f"{answer.status}, should be as if not sent"
        refused = type(field) in READ and label not in READ[type(field)] | NOT_SENT
        if not fault and (refused or label in ("NUL", "not UTF-8", "surrogate")) and answer.status != 400:
            fault = f"{answer.status}, should be 400"
        if "x-evil" in answer.headers:
            fault = "a header was smuggled in"
        wrong += [(label, fault)] if fault else []
    assert not wrong, listed(wrong)


@every_kind
async def test_marks_in_a_search_mean_themselves(api: Api, kind: Kind) -> None:
    await api.made(kind.plural, **dict(kind.example) | {kind.name_field: "Plain words"})
    marked = (
        await api.made(kind.plural, **dict(kind.example) | {kind.name_field: "a .* (a+)+$ $gt [x] ^ \\d"})
    )["id"]
    for search, found in (
        (".*", True),
        ("(a+)+$", True),
        ("$gt", True),
        ("[x]", True),
        ("\\d", True),
        ('".* (a+)+$ $gt"', True),
        (".*", True),
        ("P.*n", False),
        ("^Plain", False),
        ("(a|b)", False),
        ("\\w", False),
        ("$ne", False),
        ('"', None),
        ('""', None),
        ("\u0301", None),
    ):
        status, page = await api.get(f"/{kind.plural}", search=search, **hide(kind))
        assert status == 200, search
        if found is not None:
            assert [one["id"] for one in page[kind.plural]] == [marked] * found, search


@pytest.mark.slow
@every_kind
async def test_search_of_many_short_words_ends_soon(api: Api, kind: Kind) -> None:
    words = " ".join(f"{number:x}" for number in range(4000))
    await api.made(kind.plural, **dict(kind.example) | {"description": words})
    for search in ("a b c d e f 0 1 2 3 4 5 6 7 8 9 " * 6, "ab " * 60, '"' + "a " * 90 + '"', "ﷺ" * 200):
        status, _ = await api.get(f"/{kind.plural}", search=search[:200], **hide(kind))
        assert status == 200, search[:20]


@pytest.mark.slow
async def test_dates_at_the_edge_of_the_years_are_answered_in_every_zone(make_api: MakeApi) -> None:
    wrong: list[Any] = []
    dates: tuple[str, ...] = (
        "0001-01-01",
        "9999-12-31",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59",
        "-253402300800",
    )
    dates += ("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "@253402300799", "now +7973 years")
    for timezone in ("UTC", "Asia/Tokyo", "America/New_York", "UTC+14", "UTC-12"):
        api = await make_api(timezone=timezone)
        for date in dates:
            for name in (
                "start_date",
                "end_date",
                "starts_after",
                "starts_before",
                "ends_after",
                "ends_before",
            ):
                for strict in "01":
                    answer = await ask(api, "GET", f"/events?{name}={quote(date)}&strict_dates={strict}")
                    if fault := faults(answer, name):
                        wrong.append((timezone, name, date, strict, fault))
            for name in ("start_date", "end_date", "date", "date_utc"):
                body = {"title": "x"} | TIMES | {name: date} | ({"all_day": True} if strict else {})
                answer = await ask(api, "POST", "/events", json.dumps(body).encode())
                if fault := faults(answer, name, "end_date"):
                    wrong.append((timezone, name, date, "write", fault))
                elif answer.status == 201:
                    status, shown = await api.get(f"/events/{answer.json['id']}")
                    wrong += [] if status == 200 else [(timezone, name, date, "read", str(shown))]
        status, page = await api.get("/events", starts_after="0002-01-01", per_page="100")
        wrong += [] if status == 200 else [(timezone, "list", page)]
        await api.store.database["events"].delete_many({})
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("timezone", ["UTC-12", "America/New_York", "UTC", "UTC+14"])
@pytest.mark.parametrize("strict", ["0", "1"])
async def test_filters_by_the_first_and_the_last_day_there_is_let_everything_pass(
    make_api: MakeApi, timezone: str, strict: str
) -> None:
    """People send them for "without a beginning" and "without an end"."""
    api = await make_api(timezone=timezone)
    event = await api.event()
    passed = [("start_date", "end_date"), ("starts_after", "starts_before"), ("ends_after", "ends_before")]
    for after, before in passed:
        query = {after: "0001-01-01", before: "9999-12-31", "strict_dates": strict}
        assert await api.ids("events", **query) == [event["id"]], query
        query = {after: "9999-12-31", before: "0001-01-01", "strict_dates": strict}
        assert await api.ids("events", **query) == [], query
    assert await api.ids("venues", modified_after="0001-01-01") == await api.ids("venues")


async def test_dates_at_the_edge_of_the_years_are_shown_after_a_move_to_another_zone(
    make_api: MakeApi,
) -> None:
    api = await make_api()
    made = [await api.event(date_utc=date) for date in ("0001-01-01", "9999-12-31 23:59:59")]
    for timezone in ("Asia/Tokyo", "America/New_York"):
        moved = await make_api(timezone=timezone)
        for event in made:
            status, shown = await moved.get(f"/events/{event['id']}")
            assert (status, shown.get("date_utc")) == (200, event["date_utc"]), (timezone, shown)
        assert (await moved.get("/events", status="publish,future"))[0] == 200, timezone


# Paths and methods

PATHS: list[tuple[str, str, int, str, str]] = [
    ("GET", "/events/9223372036854775808", 404, "event-not-found", "2^63"),
    ("GET", "/events/18446744073709551616", 404, "event-not-found", "2^64"),
    ("GET", "/events/" + "9" * 5000, 404, "event-not-found", "5,000 digits"),
    ("DELETE", "/venues/" + "9" * 5000, 404, "venue-not-found", "5,000 digits"),
    ("GET", "/events/0", 404, "event-not-found", "no id is 0"),
    ("GET", "/events/000", 404, "event-not-found", "no id is 0"),
    ("GET", "/events/%D9%A3", 404, "rest_no_route", "digits are ASCII"),
    ("GET", "/events/-1", 404, "rest_no_route", "a sign is no digit"),
    ("GET", "/events/1.0", 404, "rest_no_route", "a dot is no digit"),
    ("GET", "/events/1%00", 404, "rest_no_route", "NUL is no digit"),
    ("GET", "/events/1%0A", 404, "rest_no_route", "a line end is no digit"),
    ("GET", "/events/[$ne]", 404, "rest_no_route", "an operator is no id"),
    ("GET", "/events/%7B%22$gt%22:0%7D", 404, "rest_no_route", "an operator is no id"),
    ("GET", "/events/by-slug/a%2Fb", 404, "event-not-found", "an encoded slash is part of the slug"),
    ("GET", "/events/by-slug/%00", 404, "event-not-found", "NUL"),
    ("GET", "/events/by-slug/a%00b", 404, "event-not-found", "NUL inside"),
    ("GET", "/events/by-slug/%ff", 404, "event-not-found", "not UTF-8"),
    ("GET", "/events/by-slug/%ED%A0%80", 404, "event-not-found", "half a character"),
    ("GET", "/events/by-slug/%", 404, "event-not-found", "half an escape"),
    ("GET", "/events/by-slug/%zz", 404, "event-not-found", "no escape"),
    ("GET", "/events/by-slug/$gt", 404, "event-not-found", "an operator is a text"),
    ("GET", "/events/by-slug/%5Ba-z%5D*", 404, "event-not-found", "a pattern is a text"),
    ("GET", "/events/by-slug/.*", 404, "rest_no_route", "no slug has a dot, and this is no ending of a feed"),
    ("GET", "/events/by-slug/%2e%2e", 404, "", "dots, encoded"),
    ("GET", "/events/by-slug/..", 404, "", "dots"),
    ("GET", "/events/by-slug/../../doc", 404, "", "dots lead nowhere"),
    ("GET", "/events/by-slug/", 404, "rest_no_route", "no slug"),
    ("GET", "/events/by-slug/a/b", 404, "rest_no_route", "two parts"),
    ("GET", "/events/by-slug//", 404, "", "an empty slug"),
    ("GET", "/events/by-slug/" + "a" * 5000, 404, "event-not-found", "a long slug"),
    ("GET", "/events/by-slug/%F0%9F%8E%89", 404, "event-not-found", "an emoji"),
    ("PATCH", "/events/by-slug/%00", 404, "event-not-found", "NUL"),
    ("DELETE", "/organizers/by-slug/%ff", 404, "organizer-not-found", "not UTF-8"),
    ("GET", "/nothing", 404, "rest_no_route", "no such route"),
    ("GET", "/Events", 404, "rest_no_route", "paths have a case"),
    ("GET", "//", 200, "", "the root is the calendar"),
    ("GET", "///", 404, "rest_no_route", "an empty part"),
    ("GET", "//..", 404, "", "nothing above the root"),
    ("GET", "//%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404, "rest_no_route", "no files"),
    ("GET", "//docs/..%2f..%2fpyproject.toml", 404, "rest_no_route", "no files"),
    ("GET", "//docs/%00", 404, "rest_no_route", "no files"),
    ("GET", "//event/a%0d%0aX-Evil:1/", 404, "rest_no_route", "no header from a path"),
    ("POST", "/nothing", 404, "rest_no_route", "no such route"),
    ("PROPFIND", "/nothing", 404, "rest_no_route", "no such route, whatever the method"),
]  # fmt: skip


async def test_odd_paths_are_answered(api: Api) -> None:
    await api.event()
    wrong: list[Any] = []
    for method, path, status, code, why in PATHS:
        answer = await ask(api, method, path, b"{}" if method == "PATCH" else b"")
        fault = faults(answer)
        if fault or answer.status != status or (code and answer.code != code) or "x-evil" in answer.headers:
            wrong.append((why, method, path[:60], answer.status, answer.code, fault))
    assert not wrong, listed(wrong)


def allowed(path: str) -> set[str]:
    if "/1" in path or "by-slug" in path:
        return {"GET", "HEAD", "DELETE", "POST", "PUT", "PATCH", "OPTIONS"}
    return {"GET", "HEAD", "OPTIONS"} | ({"POST"} if path not in ("/", "/doc") else set())


ROUTES = ["/", "/doc", *(f"/{kind.plural}{end}" for kind in KINDS for end in ("", "/1"))]
ROUTES += [f"/{kind.plural}/by-slug/x" for kind in POSTS]


@pytest.mark.parametrize("path", ROUTES)
async def test_wrong_methods_are_refused_with_the_right_ones(api: Api, path: str) -> None:
    for address in (path, path.rstrip("/") + "/", path + "?lang=de"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND", "TRACE"):
            answer = await ask(api, method, address)
            if method in allowed(path):
                assert answer.status not in (405, 500), (method, address)
                continue
            assert (answer.status, answer.code, faults(answer)) == (405, "rest_method_not_allowed", ""), (
                method
            )
            assert set(answer.headers["allow"].split(", ")) == allowed(path), (method, address)
        answer = await ask(api, "OPTIONS", address, headers={"Origin": "https://example.org"})
        assert (answer.status, answer.body) == (204, b""), address
        assert set(answer.headers["allow"].split(", ")) == allowed(path), address
        assert answer.headers["access-control-allow-origin"] == "*"


@every_kind
async def test_head_is_get_without_a_body(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    paths = ["/", "/doc", f"/{kind.plural}", f"/{kind.plural}/", f"/{kind.plural}/{record['id']}"]
    paths += [f"/{kind.plural}/4711", f"/{kind.plural}?page=x", "/nothing", "//docs", "//health/live"]
    paths += [f"/{kind.plural}/by-slug/{record['slug']}/"] if kind.is_post else []
    varying = {"date", "x-request-id"}
    for path in paths:
        get, head = await ask(api, "GET", path), await ask(api, "HEAD", path)
        assert (head.status, head.body) == (get.status, b""), path
        assert {k: v for k, v in head.headers.items() if k not in varying} == {
            k: v for k, v in get.headers.items() if k not in varying
        }, path
        assert int(head.headers["content-length"]) == len(get.body), path


@every_kind
async def test_slash_at_the_end_changes_nothing(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    for path in ("", "/doc", f"/{kind.plural}", f"/{kind.plural}/{record['id']}", f"/{kind.plural}/4711"):
        bare, slashed = await ask(api, "GET", path), await ask(api, "GET", path + "/")
        assert (bare.status, bare.body) == (slashed.status, slashed.body), path
    status, _ = await api.post(f"/{kind.plural}/", dict(kind.example) | {kind.name_field: "Another"})
    assert status == 201
    assert (await api.patch(f"/{kind.plural}/{record['id']}/", {"description": "x"}))[0] == 200
    assert (await api.delete(f"/{kind.plural}/{record['id']}/"))[0] == 200


# Bodies as a whole

GOOD = b'{"name": "Fine"}'
ZIPPED, GZIP = gzip.compress(GOOD), {"Content-Encoding": "gzip"}
BODIES: list[tuple[str, bytes, dict[str, str], int, str]] = [
    ("10 MB", b'{"name": "' + b"x" * 10_000_000 + b'"}', {}, 413, "rest_body_too_large"),
    ("10 MB of another type", b"x" * 10_000_000, {"Content-Type": "text/plain"}, 413, "rest_body_too_large"),
    ("just too large", b'{"name": "x"}' + b" " * (1_048_577 - 13), {}, 413, "rest_body_too_large"),
    ("just small enough", b'{"name": "x"}' + b" " * (1_048_576 - 13), {}, 201, ""),
    ("100,000 deep", b"[" * 100_000 + b"]" * 100_000, {}, 400, "rest_invalid_json"),
    ("100,000 open", b"[" * 100_000, {}, 400, "rest_invalid_json"),
    ("deep object", b'{"name":' * 50_000 + b"1" + b"}" * 50_000, {}, 400, "rest_invalid_json"),
    ("deep in a field", b'{"name":' + b"[" * 900 + b"]" * 900 + b"}", {}, 400, "rest_invalid_param"),
    ("deep in an unknown field", b'{"name":"Deep","x":' + b"[" * 900 + b"]" * 900 + b"}", {}, 201, ""),
    ("array", b'[{"name": "x"}]', {}, 400, "rest_invalid_json"),
    ("null", b"null", {}, 400, "rest_invalid_json"),
    ("string", b'"name"', {}, 400, "rest_invalid_json"),
    ("number", b"5", {}, 400, "rest_invalid_json"),
    ("true", b"true", {}, 400, "rest_invalid_json"),
    ("blanks", b"  \r\n ", {}, 400, "rest_invalid_json"),
    ("not UTF-8", b'{"name": "\xff"}', {}, 400, "rest_invalid_json"),
    ("Latin-1", b'{"name": "\xe9"}', {"Content-Type": JSON + "; charset=latin-1"}, 400, "rest_invalid_json"),
    ("UTF-16", '{"name": "x"}'.encode("utf-16"), {}, 400, "rest_invalid_json"),
    ("encoded surrogate", b'{"name": "\xed\xa0\x80"}', {}, 400, "rest_invalid_json"),
    ("byte order mark", b"\xef\xbb\xbf" + GOOD, {}, 400, "rest_invalid_json"),
    ("NUL byte", b'{"name": "a\0b"}', {}, 400, "rest_invalid_json"),
    ("NaN", b'{"name": NaN}', {}, 400, "rest_invalid_json"),
    ("Infinity", b'{"name": "x", "parent": -Infinity}', {}, 400, "rest_invalid_json"),
    ("1e999", b'{"name": "x", "parent": 1e999}', {}, 400, ""),
    ("many digits", b'{"name": "x", "parent": ' + b"9" * 5000 + b"}", {}, 400, ""),
    ("small number", b'{"name": "x", "parent": -9223372036854775809}', {}, 400, "rest_invalid_param"),
    ("truncated", b'{"name": "x', {}, 400, "rest_invalid_json"),
    ("trailing comma", b'{"name": "x",}', {}, 400, "rest_invalid_json"),
    ("two documents", GOOD + GOOD, {}, 400, "rest_invalid_json"),
    ("Python", b"{'name': 'x'}", {}, 400, "rest_invalid_json"),
    ("empty", b"", {}, 400, "rest_missing_callback_param"),
    ("empty object", b"{}", {}, 400, "rest_missing_callback_param"),
    ("NUL in a name", b'{"name": "NUL in a name", "a\\u0000b": 1}', {}, 201, ""),
    ("long name", b'{"name": "Long name", "' + b"k" * 500_000 + b'": 1}', {}, 201, ""),
    ("many names", json.dumps({"name": "Many"} | {f"k{n}": n for n in range(50_000)}).encode(), {}, 201, ""),
    ("operators", b'{"$where": "x", "name": "Operators", "$set": {"a": 1}}', {}, 201, ""),
    ("text", b"name=x", {"Content-Type": "text/plain"}, 415, "rest_unsupported_media_type"),
    ("XML", b"<name/>", {"Content-Type": "application/xml"}, 415, "rest_unsupported_media_type"),
    ("no type at all", b"x", {"Content-Type": ""}, 415, "rest_unsupported_media_type"),
    ("odd type", b"x", {"Content-Type": ";;;/"}, 415, "rest_unsupported_media_type"),
    ("odd parameter", GOOD, {"Content-Type": JSON + ";1*"}, 0, ""),
    ("odd parameters", GOOD, {"Content-Type": JSON + "; charset*0*=x''%; *=1; ="}, 0, ""),
    ("unprintable type", GOOD, {"Content-Type": "\udcff/\udcfe"}, 415, "rest_unsupported_media_type"),
    ("type in capitals", b'{"name": "Capitals"}', {"Content-Type": "Application/JSON;Charset=x"}, 201, ""),
    ("multipart", b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nx\r\n--x--\r\n',
     {"Content-Type": "multipart/form-data; boundary=x"}, 415, "rest_unsupported_media_type"),
    ("broken multipart", b"--", {"Content-Type": "multipart/form-data"}, 415, "rest_unsupported_media_type"),
    ("gzip", ZIPPED, GZIP, 201, ""),
    ("gzip by its old name", ZIPPED, {"Content-Encoding": "X-Gzip"}, 201, ""),
    ("large gzip", gzip.compress(b'{"name": "x"' + b" " * 900_000 + b"}", 0), GZIP, 201, ""),
    ("gzip of nothing", gzip.compress(b""), GZIP, 400, "rest_missing_callback_param"),
    ("just too large for gzip", gzip.compress(b" " * 1_048_577), GZIP, 413, "rest_body_too_large"),
    ("gzip bomb", gzip.compress(b'{"name": "' + b"x" * 200_000_000, 9), GZIP, 413, "rest_body_too_large"),
    ("no gzip", b"not gzip", GZIP, 400, "rest_invalid_json"),
    ("half a gzip", ZIPPED[:-16], GZIP, 400, "rest_invalid_json"),
    ("gzip without its trailer", ZIPPED[:-8], GZIP, 400, "rest_invalid_json"),
    ("gzip with a wrong checksum", ZIPPED[:-8] + bytes(8), GZIP, 400, "rest_invalid_json"),
    ("gzip with more after it", ZIPPED + b"more", GZIP, 400, "rest_invalid_json"),
    ("two gzips", ZIPPED + ZIPPED, GZIP, 400, "rest_invalid_json"),
    ("deflate", zlib.compress(GOOD), {"Content-Encoding": "deflate"}, 201, ""),
    ("deflate without its header", zlib.compress(GOOD)[2:-4], {"Content-Encoding": "deflate"}, 201, ""),
    ("deflate without its trailer", zlib.compress(GOOD)[:-4], {"Content-Encoding": "deflate"}, 400,
     "rest_invalid_json"),
    ("no deflate", b"not deflate", {"Content-Encoding": "deflate"}, 400, "rest_invalid_json"),
    ("not compressed", GOOD, {"Content-Encoding": "identity"}, 201, ""),
    ("no encoding", GOOD, {"Content-Encoding": ""}, 201, ""),
    *((f"encoding {name}", GOOD, {"Content-Encoding": name}, 415, "rest_unsupported_media_type")
      for name in ("br", "zstd", "x-unknown", "gzip, br", "gzip, gzip", "compress")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"), [b[1:] for b in BODIES], ids=[b[0] for b in BODIES]
)
async def test_odd_body_is_taken_or_refused(
    api: Api, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    before = await counts(api)
    answer = await ask(api, "POST", "/categories", body, headers)
    assert faults(answer) == ""
    assert status in (0, answer.status), answer.body[:300]
    assert code in ("", answer.code), answer.body[:300]
    if answer.status != 201:
        assert await counts(api) == before
    assert (await ask(api, "GET", "/categories")).status == 200


async def test_last_of_equal_names_counts(api: Api) -> None:
    answer = await ask(api, "POST", "/tags", b'{"name": {"$gt": ""}, "name": "first", "name": "last"}')
    assert (answer.status, answer.json["name"]) == (201, "last")


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


HEAD = (
    "POST {}/tags HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    "Content-Type: application/json\r\n{}\r\n\r\n"
)
CHUNKED = "Transfer-Encoding: chunked"
MESSAGES: list[tuple[str, str, bytes, set[int]]] = [
    ("whole in chunks", CHUNKED, b"".join(map(chunk, (b'{"name"', b": ", b'"x"}', b""))), {201}),
    ("tiny chunks", CHUNKED, b"".join(chunk(bytes([c])) for c in b'{"name": "tiny"}') + chunk(b""), {201}),
    ("2 MB in chunks", CHUNKED, chunk(b" " * 65_536) * 32 + chunk(b""), {413}),
    ("no chunk", CHUNKED, b"what is this\r\n\r\n", {400}),
    ("chunk of the wrong size", CHUNKED, b"5\r\n{}\r\n0\r\n\r\n", {400}),
    ("negative chunk", CHUNKED, b"-5\r\n{}\r\n0\r\n\r\n", {400}),
    ("huge chunk", CHUNKED, b"f" * 40 + b"\r\n{}\r\n0\r\n\r\n", {400, 413}),
    ("broken after a good start", CHUNKED, chunk(b'{"name"') + b"zz\r\n", {400}),
    ("length and chunks", f"{CHUNKED}\r\nContent-Length: 5", chunk(b"{}") + chunk(b""), {400}),
    ("two lengths", "Content-Length: 2\r\nContent-Length: 3", b"{}", {400}),
    ("negative length", "Content-Length: -2", b"{}", {400}),
    ("length of no digits", "Content-Length: two", b"{}", {400}),
    ("length in Arabic", "Content-Length: ٢", b"{}", {400}),
    ("length with underscore", "Content-Length: 1_0", b"{}", {400}),
    ("unknown transfer", "Transfer-Encoding: x", b"{}", {400, 501}),
    ("long header", "X-Long: " + "x" * 9000, b"", {431}),
    ("header without colon", "nonsense", b"", {400}),
    ("blank in a header name", "X Y: z", b"", {400}),
    ("NUL in a header", "X-Nul: a\0b", b"", {400}),
    ("unknown expectation", "Expect: 200-maybe\r\nContent-Length: 2", b"{}", {417}),
    ("no Brotli", "Content-Encoding: br\r\nContent-Length: 2", b"{}", {415}),
    ("no expectation", "Expect: \r\nContent-Length: 2", b"{}", {400}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "rest", "statuses"), [m[1:] for m in MESSAGES], ids=[m[0] for m in MESSAGES]
)
async def test_odd_transfer_is_taken_or_refused(
    api: Api, header: str, rest: bytes, statuses: set[int]
) -> None:
    head = HEAD.format(api.store.site.namespace, header)
    answer = await talk(api, head.encode() + rest)
    assert (answer.status in statuses, faults(answer)) == (True, ""), answer.body[:300]
    assert (await api.get("/tags", hide_empty="0"))[1]["total"] == (answer.status == 201)


CLOSE = b"\r\nHost: x\r\nConnection: close\r\n\r\n"
LINES: list[tuple[str, bytes, set[int]]] = [
    ("nothing that is HTTP", b"hello\r\n\r\n", {400}),
    ("unknown method", b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    ("unknown method after a good request",
     b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\nBREW / HTTP/1.1\r\n\r\n", {400}),
    ("lower-case method", b"get / HTTP/1.1\r\nHost: x\r\n\r\n", {405}),
    ("raw bytes in the path", b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", {400, 404}),
    ("no version", b"GET /\r\n\r\n", {400}),
    ("another protocol", b"GET / SIP/2.0\r\n\r\n", {400}),
    ("HTTP/9", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", {400}),
    ("HTTP/2", b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", {400}),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {400}),
    ("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400}),
    ("NUL in the path", b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    ("blank in the path", b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    ("no path", b"GET  HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    ("long path", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {414}),
    ("include of 5,000 ids", b"GET /calendar/events/v1/events?include=" + b"123456789," * 5000
     + b" HTTP/1.1\r\nHost: x\r\n\r\n", {414}),
    ("1,000 headers", b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 1000 + b"\r\n", {431}),
    ("asterisk", b"OPTIONS * HTTP/1.1" + CLOSE, {204, 400, 404}),
    ("authority", b"CONNECT example.org:443 HTTP/1.1" + CLOSE, {400, 404, 405}),
    ("another host's address", b"GET http://example.org/nothing HTTP/1.1" + CLOSE,
     {400, 404}),
    ("broken address", b"GET http://[::1 HTTP/1.1" + CLOSE, {400, 404}),
    ("broken port", b"GET http://a:99999999/ HTTP/1.1" + CLOSE, {302, 400, 404}),
    ("relative path", b"GET calendar HTTP/1.1" + CLOSE, {400, 404}),
    ("only a query", b"GET ?x HTTP/1.1" + CLOSE, {302, 400, 404}),
    ("odd host", b"GET /nothing HTTP/1.1\r\nHost: a b/\\@[\r\nConnection: close\r\n\r\n", {400, 404}),
    ("no host", b"GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n", {400, 404}),
    ("bare line ends", b"GET /nothing HTTP/1.1\nHost: x\nConnection: close\n\n", {400, 404}),
]  # fmt: skip


@pytest.mark.parametrize(("message", "statuses"), [one[1:] for one in LINES], ids=[one[0] for one in LINES])
async def test_malformed_request_does_not_hurt_the_server(
    api: Api, message: bytes, statuses: set[int]
) -> None:
    answer = await talk(api, message.removesuffix(b"\r\n") + b"\r\n")
    assert (answer.status in statuses, faults(answer)) == (True, ""), answer.body[:300]
    assert {name: answer.headers[name] for name in ("server", "x-content-type-options")} == {
        "server": "kalends",
        "x-content-type-options": "nosniff",
    }
    assert "x-request-id" in answer.headers
    assert (await ask(api, "GET", "/events")).status == 200


# Forms

FORMS: list[tuple[str, dict[str, Any], str]] = [
    ("venue[venue]=Hall&venue[city]=Oslo", {"venue": "Hall"}, "an object"),
    ("venue[0][venue]=Hall", {"venue": "Hall"}, "a list of one object"),
    ("organizer[0][organizer]=Bob&organizer[1][organizer]=Eve", {"organizer": ["Bob", "Eve"]}, "two objects"),
    ("organizer[0][organizer]=Bob&organizer[0][email]=b@example.org", {"organizer": ["Bob"]}, "two fields"),
    ("organizer[organizer]=Bob", {"organizer": ["Bob"]}, "an object where a list may be"),
    ("tags[]=a&tags[]=b", {"tags": ["a", "b"]}, "a list"),
    ("tags[0]=a&tags[1]=b", {"tags": ["a", "b"]}, "a numbered list"),
    ("tags[1]=a&tags[]=b", {"tags": ["a", "b"]}, "a list that does not begin at 0"),
    ("tags[7]=a&tags[3]=b", {"tags": ["a", "b"]}, "a list with gaps"),
    ("tags=a,b", {"tags": ["a", "b"]}, "commas"),
    ("tags=a&tags=b", {"tags": ["a", "b"]}, "the same name twice"),
    ("tags=a", {"tags": ["a"]}, "one value"),
    ("tags=", {"tags": []}, "an empty value"),
    ("tags[]=", {"tags": []}, "an empty list"),
    ("tags%5B%5D=a", {"tags": ["a"]}, "encoded brackets"),
    ("all_day=on&featured=1&sticky=no", {"all_day": True, "featured": True, "sticky": False}, "flags"),
    ("featured=0&featured=1&sticky=1&sticky=0", {"featured": True, "sticky": False}, "flags sent twice"),
    ("description=a%0D%0Ab+c", {"description": "a\r\nb c"}, "line ends and blanks"),
    ("a[[b]=c&a[b=c&[]=x&]=y&[=z&a]b[=1&=&&;&a[]b=1", {}, "broken brackets"),
    ("x[a][b][c][d][e][f][g]=1", {}, "deep brackets"),
    ("x" + "[]" * 2000 + "=1", {}, "very deep brackets"),
    ("a=1&a[b]=2&a[b][c]=3&a=4", {}, "one name in several shapes"),
    ("__proto__[x]=1&constructor[prototype]=2", {}, "names that mean something elsewhere"),
    ("%24set[title]=x&a.b=1", {}, "operators"),
]
BAD_FORMS: list[tuple[str, set[str], str]] = [
    ("title[]=a", {"title"}, "a list where a text must be"),
    ("title[$gt]=", {"title"}, "an operator where a text must be"),
    ("title=%00", {"title"}, "NUL"),
    ("venue[]=x", {"venue"}, "no id"),
    ("venue[$ne]=1", {"venue"}, "an operator where an id must be"),
    ("venue[id][$gt]=0", {"venue"}, "an operator inside"),
    ("venue[venue][]=Hall", {"venue"}, "a list inside"),
    ("organizer[0][organizer]=Bob&organizer[1]=x", {"organizer"}, "one of two is bad"),
    ("organizer[0][organizer]=Bob&organizer[1][email]=x", {"organizer"}, "one of two lacks its name"),
    ("tags[a]=b", {"tags"}, "an object where a list must be"),
    ("cost[$gt]=1", {"cost"}, "an operator where a cost must be"),
    ("image[$gt]=1", {"image"}, "an operator where an image must be"),
    ("author[]=1", {"author"}, "a list where a number must be"),
    ("start_date[]=2027-01-01", {"start_date"}, "a list where a date must be"),
    ("all_day=maybe&author=1.5&website=x&status=%20", {"all_day", "author", "website", "status"}, "several"),
]
BASE = "title=Form&start_date=2027-06-01&end_date=2027-06-01&"


async def test_forms_in_all_spellings_are_understood(api: Api) -> None:
    wrong: list[Any] = []
    for form, expected, why in FORMS:
        answer = await ask(api, "POST", "/events", (BASE + form).encode(), {"Content-Type": FORM})
        fault = faults(answer)
        if fault or answer.status != 201:
            wrong.append((why, form[:60], fault or answer.body[:200]))
            continue
        event = answer.json
        shown = {name: event[name] for name in expected}
        for name, key in (("tags", "name"), ("organizer", "organizer")):
            if name in shown:
                shown[name] = [one[key] for one in shown[name]]
        if "venue" in shown:
            shown["venue"] = event["venue"]["venue"]
        wrong += [(why, form[:60], shown)] if shown != expected else []
    assert not wrong, listed(wrong)


async def test_bad_forms_are_refused_and_name_the_field(api: Api) -> None:
    wrong: list[Any] = []
    for form, names, why in BAD_FORMS:
        answer = await ask(api, "POST", "/events", (BASE + form).encode(), {"Content-Type": FORM})
        if answer.status != 400 or set(answer.json["data"].get("params", ())) != names:
            wrong.append((why, form, answer.status, answer.body[:200]))
    assert not wrong, listed(wrong)
    assert set((await counts(api)).values()) == {0}


@pytest.mark.parametrize(
    "form",
    ["title=%ff", "title=%ED%A0%80", "title=\udcff", "&".join(f"a{n}=1" for n in range(5000)), "=" * 100_000],
    ids=["not UTF-8", "surrogate", "raw bytes", "5,000 fields", "100,000 signs"],
)
async def test_unreadable_form_is_refused(api: Api, form: str) -> None:
    body = (BASE + form).encode("utf-8", "surrogateescape")
    answer = await ask(api, "POST", "/events", body, {"Content-Type": FORM})
    assert (answer.status in (201, 400), faults(answer)) == (True, ""), answer.body[:200]


@pytest.mark.parametrize("path", ["/events", "/events/1", "/categories"])
async def test_too_many_parameters_are_told_their_limit(api: Api, path: str) -> None:
    answer = await ask(api, "GET", f"{path}?" + "a&" * 1001)
    assert (answer.status, answer.code) == (400, "rest_invalid_param")
    assert answer.json["data"]["params"] == {"query": "A query may have at most 1000 parameters."}
    assert (await ask(api, "GET", f"{path}?" + "&" * 5000)).status != 400


async def test_too_many_fields_of_a_form_are_told_their_limit(api: Api) -> None:
    async def status(form: str) -> Answer:
        return await ask(api, "POST", "/tags", form.encode(), {"Content-Type": FORM})

    answer = await status("name=a&" + "x=1&" * 20_000)
    assert (answer.status, answer.code) == (400, "rest_invalid_param")
    assert answer.json["data"]["params"] == {"body": "A form may have at most 1000 fields."}
    assert (await status("name=a" + "&x=1" * 999)).status == 201
    assert (await status("name=b" + "&" * 5000)).status == 201


# Headers


@every_post
async def test_odd_if_match_never_matches(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    path = f"/{kind.plural}/{record['id']}"
    wrong: list[Any] = []
    for value in (
        "x",
        '"',
        '""',
        '"1"',
        '"1-"',
        '"-1-ab"',
        "1",
        "W/",
        '"' + "9" * 5000 + '-ab"',
        "\udcff",
        "٣",
        "**",
    ):
        for method in ("PATCH", "DELETE"):
            answer = await ask(api, method, path, b'{"description": "x"}', {"If-Match": value})
            fault = faults(answer)
            wrong += (
                [] if (answer.status, fault) == (412, "") else [(value[:20], method, answer.status, fault)]
            )
    assert not wrong, listed(wrong)
    for value in ("x", '"', "\udcff", "*" * 8000):
        assert (await ask(api, "GET", path, headers={"If-None-Match": value})).status == 200, value[:20]


CREDENTIALS = [
    "", " ", "x", "Bearer", "Bearer ", "Bearer x", "Bearer x y", "bearer \udcff\udcfe", "Bearer é",
    "Bearer 🎉", "Bearer " + "x" * 7000, "Basic", "Basic ", "Basic !", "Basic é", "Basic \udcff", "Basic ٣",
    "Basic YQ", "Basic YTpi", "Basic /w==", "Basic Og==", "Basic 7aCA", "Basic " + "A" * 7000, "Digest x",
    "Negotiate",     '{"$ne": null}', "Bearer $ne", "Token x", ",", "Bearer,Bearer", "é x",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["open", "token"])
async def test_odd_credentials_are_refused(make_api: MakeApi, mode: str) -> None:
    api = await make_api(auth=mode)
    wrong: list[Any] = []
    for credentials in CREDENTIALS:
        for method, path in (
            ("GET", "/events"),
            ("POST", "/events"),
            ("GET", "/events/4711"),
            ("GET", "/doc"),
        ):
            answer = await ask(api, method, path, headers={"Authorization": credentials})
            fault = faults(answer)
            if fault or (answer.status, answer.code) != (401, "rest_forbidden"):
                wrong.append((credentials[:20], method, path, answer.status, fault))
            elif "www-authenticate" not in answer.headers:
                wrong.append((credentials[:20], method, path, "no WWW-Authenticate", ""))
    assert not wrong, listed(wrong)


async def test_odd_passwords_open_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_WRONG_PASSWORDS", 1000)
    path = f"/events/{(await api.event(password='right'))['id']}"
    wrong: list[Any] = []
    for password in ("\udcff", "é", "🎉", "x" * 7000, "٣", "", "$ne", "righ", "right ", "%00"):
        for method, body in (("GET", b""), ("PATCH", b"{}"), ("DELETE", b"")):
            answer = await ask(api, method, path, body, {"X-Event-Password": f"x{password}"})
            fault = faults(answer)
            wrong += (
                [] if (answer.status, fault) == (403, "") else [(password[:20], method, answer.status, fault)]
            )
    for query in (
        "password[$ne]=x",
        "password[]=right",
        "password=%00",
        "password=",
        "password=right&password=x",
    ):
        answer = await ask(api, "GET", f"{path}?{query}")
        wrong += [] if answer.status in (400, 403) else [(query, "GET", answer.status, faults(answer))]
    for query in ("password=%ff", "password=%ED%A0%80"):
        answer = await ask(api, "GET", f"{path}?{query}")
        wrong += [] if answer.status == 400 else [(query, "GET", answer.status, faults(answer))]
    for value in ({"$ne": None}, ["right"], True, 5, "a\0b"):
        status, body = await api.patch(path, {"password": value, "description": "x"})
        wrong += [] if status == 400 else [(value, "PATCH", status, body)]
    assert not wrong, listed(wrong)
    assert (await api.get(path, password="right"))[0] == 200


LANGUAGES = [
    ";;q=x", "", ",", ";", "*", "de;q=", "de;q=²", "de;q=٣", "de;q=1e9", "de;q=-1", "de;q=nan",
    "de;q=inf", "de;q=1.1.1", "de;q=.",
    "de;q=0.", "de;q=" + "9" * 5000, "de;q=0." + "1" * 5000, "\udcff;q=1",
    "de-" + "x" * 7000,
    "de," * 2500, ";q=1," * 1500, "../../etc/passwd", "de;q=1;level=x", "🎉", "de\t;\tq=1", "de;q=½",
    "de;q=Ⅷ",
]  # fmt: skip


async def test_odd_languages_are_answered(api: Api) -> None:
    wrong: list[Any] = []
    for language in LANGUAGES:
        for path, status in (("/events", 200), ("/events?page=x", 400), ("/nothing", 404), ("/doc", 200)):
            answer = await ask(api, "GET", path, headers={"Accept-Language": language})
            if answer.status != status or faults(answer):
                wrong.append((language[:20], path, answer.status, answer.body[:100]))
    for query in (
        "lang=",
        "lang=xx",
        "lang=%00",
        "lang=%ff",
        "lang=..%2Fde",
        "lang[]=de",
        "lang=de&lang=fr",
        "lang=" + "d" * 7000,
    ):
        answer = await ask(api, "GET", f"/doc?{query}")
        wrong += [] if answer.status == 200 else [(query[:20], "/doc", answer.status, answer.body[:100])]
    assert not wrong, listed(wrong)


HEADERS = [
    ("Accept", "nonsense;;;"), ("Accept", "text/html"), ("Accept-Encoding", "\udcff;q=x"),
    ("Cookie", "a=\udcff; =;;"),
    ("Range", "bytes=5-1"), ("If-Modified-Since", "yesterday"), ("If-Range", '"'), ("Origin", "null"),
    ("Forwarded", "for=evil;host=evil"), ("X-Forwarded-Host", "evil.example"), ("Host", "evil.example"),
    ("X-HTTP-Method-Override", "DELETE"), ("Upgrade", "websocket"), ("Upgrade", "h2c"),
    ("Content-Type", "\udcff"), ("Content-Type", ";1*"),
    ("Sec-WebSocket-Key", "x"), ("TE", "trailers"), ("X-Request-Id", "\udcff"),
]  # fmt: skip


@every_kind
async def test_other_headers_change_nothing(api: Api, kind: Kind) -> None:
    record = await api.made(kind.plural, **kind.example)
    path = f"/{kind.plural}/{record['id']}"
    plain = await ask(api, "GET", path)
    wrong: list[Any] = []
    for name, value in HEADERS:
        answer = await ask(api, "GET", path, headers={name: value})
        if (answer.status, answer.body) != (200, plain.body) or b"evil" in answer.body:
            wrong.append((name, value, answer.status, answer.body[:100]))
    assert not wrong, listed(wrong)


# Requests that are valid and hard to serve

TWINS: list[tuple[dict[str, Any], str]] = [
    ({"tags": ["Jazz", "jazz"]}, "one name in two cases"),
    ({"tags": ["C++", "C#", "C"]}, "names that make one slug"),
    ({"tags": ["🎉", "🎊"]}, "names that make no slug"),
    ({"tags": ["a b", "a-b", "a_b", "A  B"]}, "blanks and dashes"),
    ({"tags": ["e\u0301", "é"]}, "composed and decomposed"),
    ({"categories": ["Straße", "STRASSE", "strasse"]}, "case folding"),
    ({"venue": [{"venue": "Hall", "city": "Oslo"}, {"venue": "Hall", "city": "Rome"}]}, "two halls"),
    ({"venue": [{"venue": "Pier"}, {"venue": "Pier", "city": None}]}, "the same pier twice"),
    ({"organizer": [{"organizer": "Bob"}, {"organizer": "Bob", "phone": "1"}, {"organizer": "bob"}]}, "bobs"),
    ({"tags": ["event", "tag"], "categories": ["event", "tag"]}, "one name in two kinds"),
    ({"tags": [f"tag {number}" for number in range(100)]}, "as many as allowed"),
    ({"tags": ["x" * 500, "x" * 499 + "y"]}, "long names that share a slug"),
]


@pytest.mark.parametrize("way", ["create", "update"])
async def test_event_may_create_records_that_resemble_each_other(api: Api, way: str) -> None:
    wrong: list[Any] = []
    for links, why in TWINS:
        if way == "create":
            status, event = await api.post("/events", {"title": "x", **TIMES, **links})
        else:
            made = await api.event()
            status, event = await api.patch(f"/events/{made['id']}", links)
        if status >= 300:
            wrong.append((why, status, event))
        for kind in KINDS:
            for record in await api.store.database[kind.plural].find({}, {"_id": 1}).to_list(None):
                if kind is not EVENT:
                    await api.store.database[kind.plural].delete_one({"_id": record["_id"]})
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("kind", TERMS, ids=named)
async def test_name_of_a_renamed_term_is_free_again(api: Api, kind: Kind) -> None:
    first = await api.made(kind.plural, name="First")
    assert (await api.patch(f"/{kind.plural}/{first['id']}", {"name": "Second"}))[0] == 200
    again = await api.made(kind.plural, name="First")
    assert again["id"] != first["id"]
    status, problem = await api.post(f"/{kind.plural}", {"name": "second"})
    assert (status, problem["code"], problem["data"].get("term_id")) == (400, "term_exists", first["id"])
    links: dict[str, Any] = {kind.plural: ["First", "second"]}
    event = await api.event(**links)
    assert [term["id"] for term in event[kind.plural]] == [again["id"], first["id"]]


async def test_name_of_a_moved_category_is_free_again(api: Api) -> None:
    parent, moved = await api.made("categories", name="Parent"), await api.made("categories", name="Moved")
    assert (await api.patch(f"/categories/{moved['id']}", {"parent": parent["id"]}))[0] == 200
    await api.made("categories", name="Moved")
    status, problem = await api.post("/categories", {"name": "Moved", "parent": parent["id"]})
    assert (status, problem["code"]) == (400, "term_exists")
    await api.delete(f"/categories/{moved['id']}")
    await api.made("categories", name="Moved", parent=parent["id"])


async def test_children_that_move_up_may_meet_a_twin(api: Api) -> None:
    parent = await api.made("categories", name="Parent")
    await api.made("categories", name="Twin")
    await api.made("categories", name="Twin", parent=parent["id"])
    assert (await api.delete(f"/categories/{parent['id']}"))[0] == 200
    status, problem = await api.post("/categories", {"name": "Twin"})
    assert (status, problem["code"]) == (400, "term_exists")


HEAVY: list[tuple[str, dict[str, Any], str]] = [
    ("events", {"venue": [{"venue": "a"}] * 5_000}, "thousands of new venues"),
    ("events", {"organizer": [{"organizer": "a", "email": n} for n in range(3_000)]}, "many bad ones"),
    ("events", {"venue": list(range(1, 150_000))}, "many ids"),
    ("events", {"tags": ",".join(map(str, range(150_000)))}, "many tags"),
    ("events", {"tags": [None] * 100_000}, "many nothings"),
    ("events", {"cost": [1] * 300_000}, "many costs"),
    ("events", {"cost": "1," * 250}, "many prices"),
    ("events", {"cost": "$" * 500}, "many signs"),
    ("events", {"title": "<" * 500, "slug": "<" * 500}, "brackets in a slug"),
    ("events", {"start_date": "now" + " +1 day" * 8}, "many shifts"),
    ("events", {"description": "<div>" * 20_000}, "deeply nested text"),
    ("events", {"description": "<b><p>" * 16_000}, "badly nested text"),
    ("events", {"description": "<!--" * 25_000, "excerpt": "<script>" * 12_000}, "open comments"),
    ("events", {"description": "<a" * 50_000, "excerpt": "<a '" * 25_000}, "open tags"),
    ("events", {"description": "ﷺ" * 100_000}, "characters that fold to many"),
    ("venues", {"description": " ".join(f"{n:x}" for n in range(18_000))}, "many different words"),
    ("venues", {"description": "x" * 100_000}, "one long word"),
    ("venues", {"description": "!" * 100_000}, "marks"),
    ("venues", {"website": "http://" + "a." * 1000, "image": "http://[" + ":" * 2000}, "odd addresses"),
    ("organizers", {"email": "a." * 100 + "@" + "a-" * 20}, "odd e-mail address"),
    ("organizers", {"email": "a@" + "a." * 120}, "odd host"),
    ("categories", {"name": "\u0301" * 500, "slug": "\u0301" * 500}, "nothing but accents"),
]  # fmt: skip


@pytest.mark.parametrize(("plural", "fields"), [one[:2] for one in HEAVY], ids=[one[2] for one in HEAVY])
async def test_heavy_request_is_answered_well(api: Api, plural: str, fields: dict[str, Any]) -> None:
    kind = next(kind for kind in KINDS if kind.plural == plural)
    base = {name: value for name, value in kind.example.items() if name not in kind.links}
    body = json.dumps(base | fields, ensure_ascii=False).encode()
    assert faults(await ask(api, "POST", f"/{plural}", body)) == ""


LARGE = "🎉" * 100_000
"""The longest text, and in bytes four times as long: some forty of them are too large for one document."""


async def test_event_of_too_large_links_is_refused_and_stores_nothing(api: Api) -> None:
    ids = [(await api.made("organizers", organizer=f"Large {number}"))["id"] for number in range(45)]
    await api.store.database["organizers"].update_many({}, {"$set": {"description": LARGE}})
    event, before = await api.event(), await counts(api)
    links = {"organizer": ids, "tags": ["Brand new"], "venue": {"venue": "Brand new"}}
    for status, body in (
        await api.post("/events", {"title": "Large", **TIMES, **links}),
        await api.patch(f"/events/{event['id']}", links),
    ):
        assert (status, set(body["data"]["params"])) == (400, set(links)), body
    assert await counts(api) == before
    assert (await api.event("Large"))["slug"] == "large"


async def test_linked_record_that_grows_does_not_break_its_event(api: Api) -> None:
    ids = [(await api.made("organizers", organizer=f"Large {number}"))["id"] for number in range(45)]
    event = await api.event(organizer=ids)
    large = {"copy._id": {"$lt": ids[41]}}
    await api.store.database["events"].update_one(
        {}, {"$set": {"organizer.$[copy].description": LARGE}}, array_filters=[large]
    )
    body = json.dumps({"description": LARGE}, ensure_ascii=False).encode()
    answer = await ask(api, "PATCH", f"/organizers/{ids[44]}", body)
    assert answer.status in (200, 400), answer.body[:200]
    await api.store.maintain()
    status, shown = await api.get(f"/events/{event['id']}")
    assert (status, len(shown["organizer"])) == (200, 45)
    assert await api.store.database["fanout_jobs"].count_documents({}) == 0


@pytest.mark.parametrize("field", ["categories", "tags"])
async def test_many_events_may_name_one_new_term_at_once(api: Api, field: str) -> None:
    bodies = [
        json.dumps({"title": f"Event {number}", **TIMES, field: ["Brand new"]}).encode()
        for number in range(24)
    ]
    answers = await asyncio.gather(*(ask(api, "POST", "/events", body) for body in bodies))
    assert {(answer.status, answer.code) for answer in answers} == {(201, "")}
    assert len({answer.json[field][0]["id"] for answer in answers}) == 1
    assert (await counts(api))[field] == 1


async def test_term_that_somebody_makes_in_between_is_linked(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    builder = api.store.creator._builder
    insert_linked = builder.insert_linked

    async def insert_too_late(*arguments: Any) -> None:
        if not made:
            made.append(0)
            made[0] = (await api.made("tags", name="Brand new"))["id"]
        await insert_linked(*arguments)

    monkeypatch.setattr(builder, "insert_linked", insert_too_late)
    event = await api.event(tags=["brand new"])
    assert [tag["id"] for tag in event["tags"]] == made


async def test_many_may_create_the_same_name_at_once(api: Api) -> None:
    body = json.dumps({"title": "x", **TIMES, "description": "word " * 15_000, "password": "x"}).encode()
    answers = await asyncio.gather(*(ask(api, "POST", "/events", body) for _ in range(16)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["slug"] for answer in answers}) == 16


async def test_every_kind_has_its_values_in_the_tables() -> None:
    types = {type(field) for kind in KINDS for field in kind.body_schema().fields.values()}
    assert types == set(TAKEN)
    read = {type(field) for kind in KINDS for field in kind.query_schema().fields.values()}
    assert read == {*READ, FreeText, Many, Statuses}
    assert all(name in BY_NAME[kind].body_schema().fields for kind, name in BUT)


@pytest.mark.parametrize("depth", [900, 998, 1005, 1015, 1021])
async def test_a_deeply_nested_body_is_stored_or_refused(api: Api, depth: int) -> None:
    body = '{"name": "deep", "other": ' + "[" * depth + "]" * depth + "}"
    headers = {"Content-Type": "application/json"}
    status, answer = await api.send("POST", "/tags", data=body, headers=headers)
    assert status in (201, 400), answer


async def test_a_huge_index_in_a_form_is_no_error(api: Api) -> None:
    form = f"name=a&x[{'9' * 5000}]=a&x[]=b"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, answer = await api.send("POST", "/tags", data=form, headers=headers)
    assert status == 201, answer


async def test_an_origin_that_is_no_text_is_refused(api: Api) -> None:
    head = f"POST {api.store.site.namespace}/tags HTTP/1.1\r\nHost: localhost\r\nOrigin: http://".encode()
    rest = b"\xff\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n" + b'{"name":"a"}'
    reader, writer = await asyncio.open_connection(api.client.host, api.client.port)
    writer.write(head + rest)
    assert (await reader.readline()).split()[1] == b"403"
    writer.close()
