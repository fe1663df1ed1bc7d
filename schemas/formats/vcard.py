"""vCard 3.0 (RFC 2426): venues and organizers for address books."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from icalendar import Component, vAdr, vN, vOrg, vText, vUri

from schemas.formats.content_lines import coordinates, text, to_bytes
from schemas.formats.format import Feed, Format, plain_text

PLACE = ("address", "city", "stateprovince", "zip", "country")


class Card(Component):
    """One entry of an address book."""

    name = "VCARD"


def item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    shown, card = feed.shown(record), Card()
    name = text(shown[feed.kind.name_field])
    card["VERSION"] = vText("3.0")
    card["FN"] = vText(name)
    card["N"] = vN((name, "", "", "", ""))
    card["ORG"] = vOrg((name,))
    card["X-ABSHOWAS"] = vText("COMPANY")
    if any(shown.get(part) for part in PLACE):
        card["ADR"] = vAdr(("", "", *(text(shown[part]) for part in PLACE)))
    texts = {"TEL": "phone", "EMAIL": "email"}
    card.update({key: vText(text(shown[part])) for key, part in texts.items() if shown.get(part)})
    if shown["description"]:
        card["NOTE"] = vText(text(plain_text(shown["description"])))
    if shown.get("geo_lat") is not None:
        card["GEO"] = coordinates(shown["geo_lat"], shown["geo_lng"])
    card["URL"] = vUri(shown["website"] or shown["url"])
    card["UID"] = vUri(feed.uid(record).urn)
    card["REV"] = vText(record["modified_utc"].replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    return to_bytes(card)


def begin(feed: Feed) -> bytes:
    return b""


VCARD = Format("vcf", "text/vcard", ("venue", "organizer"), begin, item)
