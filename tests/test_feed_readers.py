"""Feeds of random events, read back by libraries that others wrote, show what the JSON list shows. Khal,
vdirsyncer and ical.js read them in tests/clients."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from datetime import UTC, datetime
from typing import Any

import feedparser
import icalendar
import pytest
from geojson_pydantic import FeatureCollection
from pyld import jsonld

from handlers import feeds
from tests.conftest import Api
from tests.feed_events import SINCE, Shown, days, expected, random_events

pytestmark = pytest.mark.slow

SCHEMA_ORG = "https://schema.org/"
TYPES = "AggregateOffer Event GeoCoordinates Offer Organization Place PostalAddress"
PROPERTIES = """address addressCountry addressLocality addressRegion description email endDate eventStatus geo
highPrice identifier image latitude location longitude lowPrice name offers organizer postalCode price
priceCurrency startDate streetAddress telephone url"""
TERMS = {name: SCHEMA_ORG + name for name in f"{TYPES} {PROPERTIES}".split()}
"""Names of the vocabulary of schema.org; in its context any other name has no meaning."""


@pytest.fixture(params=["short", "long"])
async def rows(request: pytest.FixtureRequest, api: Api, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Random events, whose feeds are written in the way of short and of long ones."""
    monkeypatch.setattr(feeds, "MAX_SHORT_FEED", 40 if request.param == "short" else 5)
    return await random_events(api, seed=len(request.param), number=40)


async def body(api: Api, ending: str) -> str:
    status, text = await api.get(f"/events.{ending}", **SINCE)
    assert status == 200, text
    assert isinstance(text, str)
    return text


def words(text: str) -> list[str]:
    """What remains of HTML without its tags, of which these are within words."""
    return html.unescape(re.sub("</?[a-z][^<>]*>", " ", re.sub("</?[ab]( [^>]*)?>", "", text))).split()


def unescaped(text: str) -> str:
    """The value of a property that the library does not know, and leaves as it is written."""
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def seen(event: icalendar.Event) -> Shown:
    title, start, end = str(event["summary"]), event.start, event.end
    if not isinstance(start, datetime):
        return days(title, str(start), str(end))
    return Shown(title, False, *(f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}" for time in (start, end)))


async def test_icalendar(api: Api, rows: list[Any]) -> None:
    text = await body(api, "ics")
    calendar = icalendar.Calendar.from_ical(text)
    found = {str(event["url"]): event for event in calendar.events}
    assert {url: seen(event) for url, event in found.items()} == expected(rows)
    assert list(found) == [row["url"] for row in rows]
    assert len({str(event["uid"]) for event in calendar.events}) == len(rows)
    for row in rows:
        event = found[row["url"]]
        assert unescaped(event.get("x-alt-desc", "")) == row["description"]
        assert str(event.get("description", "")).split() == words(row["description"])
        assert [str(name) for name in event.categories] == [term["name"] for term in row["categories"]]
    used = set(re.findall("^DT(?:START|END);TZID=(.*?):", text, re.MULTILINE))
    assert used <= {zone.tz_name for zone in calendar.timezones}
    assert len(calendar.timezones) == len({zone.tz_name for zone in calendar.timezones})


async def test_a_time_zone_is_defined_before_it_is_used(api: Api, rows: list[Any]) -> None:
    defined = set()
    for name, zone in re.findall("^(TZID:|DT(?:START|END);TZID=)([^:\r\n]*)", await body(api, "ics"), re.M):
        if name == "TZID:":
            defined.add(zone)
        assert zone in defined
    assert len(defined) > 5


@pytest.mark.parametrize("ending", ["rss", "atom"])
async def test_feed_readers(api: Api, rows: list[Any], ending: str) -> None:
    read = feedparser.parse(await body(api, ending), sanitize_html=False, resolve_relative_uris=False)
    assert not read.bozo, read.get("bozo_exception")
    assert [entry.link for entry in read.entries] == [row["url"] for row in rows]
    assert [entry.title.split() for entry in read.entries] == [row["title"].split() for row in rows]
    for name, key in (("ev_startdate", "utc_start_date"), ("ev_enddate", "utc_end_date")):
        assert [entry[name] for entry in read.entries] == [row[key].replace(" ", "T") + "Z" for row in rows]
    told = [entry.content[0].value if ending == "atom" else entry.summary for entry in read.entries]
    assert [words(text) for text in told] == [words(row["description"]) for row in rows]
    assert len({entry.id for entry in read.entries}) == len(rows)


async def test_csv(api: Api, rows: list[Any]) -> None:
    table = list(csv.DictReader(io.StringIO((await body(api, "csv")).removeprefix("\ufeff"), newline="")))
    assert [int(line["Event ID"]) for line in table] == [row["id"] for row in rows]
    for line, row in zip(table, rows, strict=True):
        assert f"{line['Event Start Date']} {line['Event Start Time']}" == row["start_date"]
        assert f"{line['Event End Date']} {line['Event End Time']}" == row["end_date"]
        assert line["Timezone"].removeprefix("'") == row["timezone"]
        assert line["Event Name"].removeprefix("'") == row["title"]
        assert line["Event Description"] == row["description"]


async def test_geojson(api: Api, rows: list[Any]) -> None:
    found = FeatureCollection.model_validate_json(await body(api, "geojson"))
    assert [feature.id for feature in found.features] == [row["id"] for row in rows]
    assert [feature.properties for feature in found.features] == rows
    assert any(feature.geometry for feature in found.features)


async def test_json_ld(api: Api, rows: list[Any]) -> None:
    def context(url: str, options: Any) -> Any:
        """The context of schema.org, which is not loaded from the network."""
        assert url.rstrip("/") == SCHEMA_ORG.rstrip("/")
        return {"contextUrl": None, "documentUrl": url, "document": {"@context": {"id": "@id"} | TERMS}}

    document = json.loads(await body(api, "jsonld"))
    read = jsonld.expand(document, {"documentLoader": context})
    for one, row in zip(read, rows, strict=True):
        assert one["@type"] == [f"{SCHEMA_ORG}Event"]
        assert one[f"{SCHEMA_ORG}identifier"] == [{"@value": row["id"]}]
        assert one[f"{SCHEMA_ORG}name"] == [{"@value": row["title"]}]
        for name, key in (("startDate", "utc_start_date"), ("endDate", "utc_end_date")):
            (said,) = one[SCHEMA_ORG + name]
            at = datetime.fromisoformat(said["@value"]).astimezone(UTC)
            assert f"{at:%Y-%m-%d %H:%M:%S}" == row[key]
    assert keys(document) <= {*TERMS, "@context", "@graph", "@id", "@type"}


def keys(value: Any) -> set[str]:
    """The names in a document, at any depth."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    return set(value).union(*map(keys, value.values())) if isinstance(value, dict) else set()
