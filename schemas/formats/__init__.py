"""Formats other than JSON in which lists and single records can be read."""

from schemas.formats.csv_table import CSV
from schemas.formats.format import Feed, Format
from schemas.formats.geojson import GEOJSON
from schemas.formats.ical import ICALENDAR
from schemas.formats.json_ld import JSON_LD
from schemas.formats.syndication import ATOM, RSS
from schemas.formats.vcard import VCARD
from schemas.kind import Kind

__all__ = ["FORMATS", "Feed", "Format", "formats_of"]

FORMATS = (ICALENDAR, RSS, ATOM, GEOJSON, CSV, JSON_LD, VCARD)


def formats_of(kind: Kind) -> dict[str, Format]:
    """The formats of a kind, by their endings."""
    return {one.ending: one for one in FORMATS if kind.name in one.kinds}
