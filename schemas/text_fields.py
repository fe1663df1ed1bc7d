"""Marshmallow fields for text: validation, and sanitizing before it is stored."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from marshmallow import ValidationError, fields

from schemas.language import Text
from schemas.values.sanitizing import plain_text, safe_html

URL = re.compile(r"https?://[^\s/?#\\@\x00-\x1f\x7f]+[^\s\\\x00-\x1f\x7f]*", re.IGNORECASE)
EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


HTML_DELIMITERS = re.compile("[<>\"'`]")
"""Characters that could end an attribute or open a tag where a URL is shown in HTML."""
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def clean(value: Any) -> str:
    """Rejects values that are not strings, or that cannot be stored, logged and sent."""
    if not isinstance(value, str):
        raise ValidationError(Text("Must be text."))
    if UNSTORABLE.search(value):
        raise ValidationError(Text("Must not contain NUL characters or unpaired surrogates."))
    return value


def limited(value: str, limit: int) -> str:
    if len(value) > limit:
        raise ValidationError(Text("Must have at most {limit} characters.", limit=limit))
    return value


def with_metadata(options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Adds metadata for the API description to the options of a field. If a single type would be wrong,
    `one_of` lists fields that together describe all accepted values."""
    return options | {"metadata": {**options.get("metadata", {}), **more}}


class FreeText(fields.String):
    """Free text, stored exactly as sent; an empty string clears the field."""

    def __init__(self, limit: int = 100_000, **options: Any) -> None:
        options.setdefault("allow_none", True)
        super().__init__(**options)
        self.limit = limit

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return limited(clean(value), self.limit) or None


class PlainText(FreeText):
    """A short text such as a city, stored without HTML tags."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        text = plain_text(super()._deserialize(value, attr, data, **options) or "")
        return limited(text, self.limit) or None  # once more: it may be longer now


class Html(FreeText):
    """Text that may contain markup, such as a description, stored without unsafe HTML."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        try:
            text = safe_html(super()._deserialize(value, attr, data, **options) or "")
            return limited(text, self.limit) or None
        except ValueError as error:
            raise ValidationError(error_text(error)) from None


class Numeral(PlainText):
    """A short text that may also be sent as a number, such as a ZIP code."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        number = isinstance(value, int) and not isinstance(value, bool)
        return super()._deserialize(str(value) if number else value, attr, data, **options)


class Name(fields.String):
    """The title or name of a record: not blank, without HTML tags and surrounding white space."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**with_metadata(options, minLength=1, maxLength=500))

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        name = limited(plain_text(limited(clean(value).strip(), 500)).strip(), 500)
        if not name:
            raise ValidationError(Text("Must not be blank."))
        return name


class SlugText(fields.String):
    """A requested slug; the store normalizes it and makes it unique."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return limited(clean(value), 500).strip() or None


class WebAddress(fields.String):
    """An http or https URL."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return web_address(value) if value != "" else None


def web_address(value: Any) -> str:
    address = limited(clean(value), 2048)
    if not URL.fullmatch(address) or not _has_host(address):
        raise ValidationError(Text("Must be a URL that starts with http:// or https://."))
    return HTML_DELIMITERS.sub(lambda mark: f"%{ord(mark[0]):02X}", address)


def _has_host(address: str) -> bool:
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        return False


class MailAddress(fields.String):
    """An e-mail address."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        address = limited(clean(value), 254)
        if address and not EMAIL.fullmatch(address):
            raise ValidationError(Text("Must be an e-mail address."))
        return address or None


def error_text(error: ValueError) -> str:
    return error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
