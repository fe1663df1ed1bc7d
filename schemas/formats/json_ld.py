"""JSON-LD: events in the vocabulary of schema.org, for search engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from schemas.formats.format import Feed, Format


def item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    assert feed.kind.json_ld is not None
    described = feed.kind.json_ld(feed.kind, record, feed.context)
    named = {"@id": feed.kind.rest_url(feed.context.site, record["_id"]), "identifier": record["_id"]}
    return orjson.dumps(named | described)


def begin(feed: Feed) -> bytes:
    return b'{"@context":"https://schema.org","@graph":['


JSON_LD = Format("jsonld", "application/ld+json", ("event",), begin, item, end=b"]}", separator=b",")
