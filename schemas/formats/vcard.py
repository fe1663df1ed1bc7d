"""vCard 3.0 (RFC 2426): venues and organizers for address books."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.formats.content_lines import component, coordinates, text
from schemas.formats.format import Feed, Format, plain_text
from schemas.kind import Document

PLACE = ("address", "city", "stateprovince", "zip", "country")


def item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    shown = feed.shown(record)
    name = text(shown[feed.kind.name_field])
    lines = [
        "VERSION:3.0",
        f"FN:{name}",
        f"N:{name};;;;",
        f"ORG:{name}",
        "X-ABSHOWAS:COMPANY",
        *details(shown),
        f"URL:{shown['website'] or shown['url']}",
        f"UID:{feed.uid(record).urn}",
        f"REV:{record['modified_utc'].isoformat()}Z",
    ]
    return component("VCARD", lines)


def details(shown: Document) -> Iterator[str]:
    """What a venue or organizer may have, besides its name and addresses on the web."""
    if any(shown.get(part) for part in PLACE):
        yield f"ADR:;;{';'.join(text(shown[part]) for part in PLACE)}"
    for name, field in (("TEL", "phone"), ("EMAIL", "email")):
        if shown.get(field):
            yield f"{name}:{text(shown[field])}"
    if shown["description"]:
        yield f"NOTE:{text(plain_text(shown['description']))}"
    if shown.get("geo_lat") is not None:
        yield f"GEO:{coordinates(shown['geo_lat'], shown['geo_lng'])}"


def begin(feed: Feed) -> bytes:
    return b""


VCARD = Format("vcf", "text/vcard", ("venue", "organizer"), begin, item)
