"""RSS 2.0 and Atom: what feed readers subscribe to. Times and places of events use the common extensions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring
from xml.sax.saxutils import escape, quoteattr

from schemas.formats.format import Feed, Format, address_of, plain_text, printable, venues_of
from schemas.values.dates import http_date

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
EXTENSIONS = 'xmlns:ev="http://purl.org/rss/1.0/modules/event/" xmlns:georss="http://www.georss.org/georss"'


def rfc3339(utc: datetime) -> str:
    return f"{utc.isoformat()}Z"


def add(parent: Element, tag: str, text: str = "", **attributes: str) -> None:
    if text or attributes:
        SubElement(parent, tag, attributes).text = printable(text) or None


def add_extensions(entry: Element, record: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    add(entry, "ev:startdate", rfc3339(record["start_utc"]))
    add(entry, "ev:enddate", rfc3339(record["end_utc"]))
    for venue in venues_of(shown):
        add(entry, "ev:location", address_of(venue))
        if venue["geo_lat"] is not None:
            add(entry, "georss:point", f"{venue['geo_lat']} {venue['geo_lng']}")
    for organizer in shown["organizer"]:
        add(entry, "ev:organizer", organizer["organizer"])


def written(entry: Element) -> bytes:
    return tostring(entry, encoding="unicode").encode() + b"\n"


def rss_begin(feed: Feed) -> bytes:
    atom = 'xmlns:atom="http://www.w3.org/2005/Atom"'
    title, site, own = escape(feed.title), escape(feed.context.site.base_url), quoteattr(feed.url)
    return (
        f'{DECLARATION}<rss version="2.0" {atom} {EXTENSIONS}>\n<channel>\n<title>{title}</title>\n'
        f"<link>{site}</link>\n<description>{title}</description>\n<ttl>60</ttl>\n"
        f"<lastBuildDate>{http_date(feed.updated)}</lastBuildDate>\n"
        f'<atom:link rel="self" type="application/rss+xml" href={own}/>\n'
    ).encode()


def rss_item(feed: Feed, record: Mapping[str, Any]) -> bytes:
    shown, entry = feed.shown(record), Element("item")
    add(entry, "title", record["title"])
    add(entry, "link", shown["url"])
    SubElement(entry, "guid", isPermaLink="false").text = feed.uid(record).urn
    add(entry, "pubDate", http_date(record["date_utc"]))
    add(entry, "description", shown["description"])
    for term in (*shown["categories"], *shown["tags"]):
        add(entry, "category", term["name"])
    add_extensions(entry, record, shown)
    return written(entry)


def atom_begin(feed: Feed) -> bytes:
    return (
        f'{DECLARATION}<feed xmlns="http://www.w3.org/2005/Atom" {EXTENSIONS}>\n'
        f"<id>{feed.id.urn}</id>\n<title>{escape(feed.title)}</title>\n"
        f"<updated>{rfc3339(feed.updated)}</updated>\n"
        f'<link rel="self" type="application/atom+xml" href={quoteattr(feed.url)}/>\n'
        f"<author><name>{escape(feed.context.site.host)}</name></author>\n"
    ).encode()


def atom_entry(feed: Feed, record: Mapping[str, Any]) -> bytes:
    shown, entry = feed.shown(record), Element("entry")
    add(entry, "id", feed.uid(record).urn)
    SubElement(entry, "title").text = printable(record["title"])
    add(entry, "link", rel="alternate", href=shown["url"])
    add(entry, "published", rfc3339(record["date_utc"]))
    add(entry, "updated", rfc3339(record["modified_utc"]))
    for organizer in shown["organizer"]:
        SubElement(SubElement(entry, "author"), "name").text = printable(organizer["organizer"])
    add(entry, "summary", plain_text(shown["excerpt"]))
    add(entry, "content", shown["description"], type="html")
    for term in (*shown["categories"], *shown["tags"]):
        add(entry, "category", term=printable(term["slug"]), label=printable(term["name"]))
    add_extensions(entry, record, shown)
    return written(entry)


RSS = Format("rss", "application/rss+xml", ("event",), rss_begin, rss_item, end=b"</channel>\n</rss>\n")
ATOM = Format("atom", "application/atom+xml", ("event",), atom_begin, atom_entry, end=b"</feed>\n")
