"""The image of a record, in the representation that clients expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from schemas.kind import Document, ResponseSchema

SIZES = ("thumbnail", "medium", "medium_large", "large", "full")


class SizeResponse(ResponseSchema):
    """One size of an image."""

    width = fields.Integer(allow_none=True)
    height = fields.Integer(allow_none=True)
    mime_type = fields.String(data_key="mime-type", allow_none=True)
    filesize = fields.Integer(allow_none=True)
    url = fields.String(allow_none=True)


SizesResponse = ResponseSchema.from_dict(
    {name: fields.Nested(SizeResponse) for name in SIZES}, name="SizesResponse"
)


class ImageResponse(ResponseSchema):
    """An image. Either its ID or its URL is known, and all sizes have the same URL."""

    url = fields.String(allow_none=True)
    id = fields.Integer(allow_none=True)
    extension = fields.String(allow_none=True)
    width = fields.Integer(allow_none=True)
    height = fields.Integer(allow_none=True)
    filesize = fields.Integer(allow_none=True)
    sizes = fields.Nested(SizesResponse)


def represent_image(image: Mapping[str, Any] | None) -> Document | bool:
    """The representation of an image; False if there is none, as clients expect."""
    if not image:
        return False
    unknown = dict.fromkeys(("extension", "width", "height", "filesize"))
    size = {**dict.fromkeys(("width", "height", "mime-type", "filesize")), "url": image["url"]}
    return {"url": image["url"], "id": image["id"], **unknown, "sizes": dict.fromkeys(SIZES, size)}
