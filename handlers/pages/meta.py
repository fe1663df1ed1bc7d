"""What search engines and previews of links are told about a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from markupsafe import Markup

from schemas.kind import Document

ESCAPED = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
"""Nothing in the data can end the element that it is in."""


@dataclass(frozen=True)
class Meta:
    """The description of a page; templates have it as `meta`."""

    title: str
    description: str = ""
    image: str = ""
    type: str = "website"
    json_ld: Document | None = None
    is_indexed: bool = True

    @property
    def script(self) -> Markup:
        """The structured data, to be put into a script element."""
        text = orjson.dumps(self.json_ld).decode()
        return Markup(text.translate(ESCAPED))  # noqa: S704 (cannot contain a tag)


def image_address(shown: Any) -> str:
    """The address of the image of a record; empty if there is none, or only its ID is known."""
    return (shown or {}).get("url") or ""
