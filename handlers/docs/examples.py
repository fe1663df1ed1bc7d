"""Examples for the API description: representations of records, and their ids and slugs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from schemas import BY_NAME, KINDS
from schemas.caller import PUBLIC
from schemas.kind import Document, Kind, RenderContext, load
from schemas.site import Site
from schemas.values.slugs import slug_of

EXAMPLE_DATE = datetime(2027, 1, 15, 9, 30)


def example_id(kind: Kind) -> int:
    """The id that a record of this kind gets when the example event is created in an empty database."""
    return [one for one in KINDS if one.id_space == kind.id_space].index(kind) + 1


def example_slug(kind: Kind) -> str:
    """The slug of the record that the example body creates."""
    return slug_of(kind.example[kind.name_field], kind.name)


def list_example(kind: Kind, site: Site) -> Document:
    url = f"{site.api}/{kind.plural}?page=1"
    return {kind.plural: [record_example(kind, site)], "rest_url": url, "total": 1, "total_pages": 1}


def record_example(kind: Kind, site: Site) -> Document:
    """The record that the example body creates."""
    return _shown(kind, kind.example, site, {"events": {"publish": 1}})


def _shown(kind: Kind, body: Mapping[str, Any], site: Site, more: Document) -> Document:
    data = load(
        kind.body_schema, {name: value for name, value in body.items() if name not in kind.links}, site
    )
    status = {"status": "publish", "author": 1} if kind.is_post else {}
    record = kind.normalize(data | status, None, site) | more
    record |= {"_id": example_id(kind), "slug": slug_of(body[kind.name_field], kind.name)}
    record |= {"date_utc": EXAMPLE_DATE, "modified_utc": EXAMPLE_DATE}
    links = {name: _linked(BY_NAME[to], body[name], site) for name, to in kind.links.items() if name in body}
    return kind.represent(kind, record, RenderContext(site, PUBLIC)) | links


def _linked(kind: Kind, sent: Any, site: Site) -> Any:
    """The representation of a linked record; a list if a list was sent."""
    if isinstance(sent, list):
        return [_linked(kind, one, site) for one in sent]
    return _shown(kind, {"name": sent} if isinstance(sent, str) else sent, site, {})
