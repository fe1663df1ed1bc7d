"""Field types of the interface: what each accepts, and what it says when it does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from marshmallow import ValidationError, fields
from marshmallow.experimental.context import Context

from schemas.costs import read_cost
from schemas.dates import parse_moment
from schemas.language import Text
from schemas.sanitizing import plain_text, safe_html
from schemas.site import Site
from schemas.zones import parse_zone

LARGEST = 2**63 - 1
TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
URL = re.compile(r"https?://[^\s/?#\\@]+[^\s\\]*", re.IGNORECASE)
EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


QUOTING = re.compile("[<>\"'`]")
"""What could end an attribute or open a tag where an address is shown in HTML."""
UNFIT = re.compile("[\0\ud800-\udfff]")


def site() -> Site:
    """The site that values are read for."""
    return Context[Site].get()


def clean(value: Any) -> str:
    """A string that a database, a log and a page can hold."""
    if not isinstance(value, str):
        raise ValidationError(Text("Must be a text."))
    if UNFIT.search(value):
        raise ValidationError(Text("Must not contain NUL or half a character."))
    return value


def limited(value: str, limit: int) -> str:
    if len(value) > limit:
        raise ValidationError(Text("Must have at most {limit} characters.", limit=limit))
    return value


def with_metadata(options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The options of a field with more metadata for the API description. Where one type would not tell the
    truth, `one_of` lists fields, each of which takes some of the values."""
    return options | {"metadata": {**options.get("metadata", {}), **more}}


class Words(fields.String):
    """Free text, taken exactly as written; an empty one clears the field."""

    def __init__(self, limit: int = 100_000, **options: Any) -> None:
        options.setdefault("allow_none", True)
        super().__init__(**options)
        self.limit = limit

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return limited(clean(value), self.limit) or None


class PlainText(Words):
    """A short text such as a city, stored without HTML tags."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        return plain_text(super()._deserialize(value, attr, data, **options) or "") or None


class Html(Words):
    """A text that may have markup, such as a description, stored without what is not safe to show."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        try:
            return safe_html(super()._deserialize(value, attr, data, **options) or "") or None
        except ValueError as error:
            raise ValidationError(_said(error)) from None


class Numeral(PlainText):
    """A short text that may be sent as a number, such as a ZIP code."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        number = isinstance(value, int) and not isinstance(value, bool)
        return super()._deserialize(str(value) if number else value, attr, data, **options)


class Name(fields.String):
    """What a record is called: one visible text, without HTML tags and the blanks around it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**with_metadata(options, minLength=1, maxLength=500))

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        name = plain_text(limited(clean(value).strip(), 500)).strip()
        if not name:
            raise ValidationError(Text("Must not be blank."))
        return name


class SlugText(fields.String):
    """A wished slug; what it becomes is the store's to say."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return limited(clean(value), 500).strip() or None


class Flag(fields.Boolean):
    """True or false in any of the spellings that clients use."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        word = str(value).lower() if isinstance(value, bool | int | str) else ""
        if word not in TRUE | FALSE:
            raise ValidationError(Text("Must be true or false."))
        return word in TRUE


def whole(value: Any, least: int = 0) -> int:
    """A whole number within 64 bits, as JSON integer or decimal digits."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LARGEST:
        raise ValidationError(Text("Must be a whole number of at least {least}.", least=least))
    return value


class Whole(fields.Integer):
    """A whole number."""

    def __init__(self, least: int = 0, **options: Any) -> None:
        super().__init__(**with_metadata(options, minimum=least, format="int64"))
        self.least = least

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return whole(value, self.least)


class Number(fields.Float):
    """A finite decimal number within bounds."""

    def __init__(self, low: float, high: float, **options: Any) -> None:
        super().__init__(**with_metadata(options, minimum=low, maximum=high, format="double"))
        self.low, self.high = low, high

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        text = str(value) if not isinstance(value, bool) else ""
        if re.fullmatch(r"[+-]?[0-9]{1,9}(\.[0-9]{1,30})?([eE]-?[0-9]{1,2})?", text):
            number = float(text)
            if self.low <= number <= self.high:
                return number
        raise ValidationError(Text("Must be a number from {low} to {high}.", low=self.low, high=self.high))


def need_both(data: Mapping[str, Any], latitude: str, longitude: str) -> None:
    """A place has two coordinates, or none."""
    missing = [name for name in (latitude, longitude) if data.get(name) is None]
    if len(missing) == 1:
        raise ValidationError(Text("Must be sent together with the other coordinate."), missing[0])


class WebAddress(fields.String):
    """An http or https address."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        return web_address(value) if value != "" else None


def web_address(value: Any) -> str:
    address = limited(clean(value), 2048)
    if not URL.fullmatch(address) or not _has_host(address):
        raise ValidationError(Text("Must be a web address that starts with http:// or https://."))
    return QUOTING.sub(lambda mark: f"%{ord(mark[0]):02X}", address)


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


class Status(fields.String):
    """A publication status: a word."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", value):
            raise ValidationError(Text("Must be a word of 1 to 40 letters, digits, - or _."))
        return value


class Picture(fields.String):
    """An image: an ID or an address, or the object that a representation shows for it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**with_metadata(options, one_of=(fields.String(), fields.Integer())))

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        if isinstance(value, Mapping):
            named = value.keys() & {"url", "id"}
            value = (value.get("url") or value.get("id") or "") if named else value
        if value in ("", "0", "false") or value == 0:  # False equals 0
            return None
        if re.fullmatch(r"[0-9]{1,19}", str(value)) and not isinstance(value, bool):
            return {"id": whole(value, 1), "url": None}
        return {"id": None, "url": web_address(value)}


class Zoned(fields.String):
    """A time zone; an empty one is the site's."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        try:
            return parse_zone(clean(value)) if value != "" else site().zone
        except ValueError as error:
            raise ValidationError(_said(error)) from None


class When(fields.String):
    """A date, a time, an instant or a relative word."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        try:
            return parse_moment(value, site().now(), site().zone)
        except ValueError as error:
            raise ValidationError(_said(error)) from None


class Price(fields.Raw):
    """A cost: a number, a text, or a list of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**with_metadata(options, one_of=(fields.String(), fields.Float())))

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        try:
            return read_cost(value, site().currency)
        except ValueError as error:
            raise ValidationError(_said(error)) from None


def _said(error: ValueError) -> str:
    return error.args[0] if error.args and isinstance(error.args[0], str) else str(error)


def spread(value: Any) -> list[Any]:
    """One list from its spellings: an array, a comma-separated string, or one value. An item of an array is
    one value, commas and all."""
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    stripped = [item.strip() if isinstance(item, str) else item for item in items]
    return [item for item in stripped if item not in ("", None)]


class Many(fields.List[Any]):
    """A list of simple values in any spelling, without repetitions."""

    repeats = True

    def __init__(self, inner: fields.Field[Any], limit: int = 200, **options: Any) -> None:
        super().__init__(inner, **options)
        self.limit = limit

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        parts = spread(value)
        if len(parts) > self.limit:
            raise ValidationError(Text("Must have at most {limit} entries.", limit=self.limit))
        read = [self.inner.deserialize(part, attr, data, **options) for part in parts]
        return [item for index, item in enumerate(read) if item not in read[:index]]


class Statuses(fields.String):
    """Publication statuses, separated by commas; the interface calls them one string."""

    repeats = True

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        return Many(Status()).deserialize(value, attr, data, **options)


class Choice(fields.String):
    """One word of a fixed few, in any case."""

    def __init__(self, *words: str, **options: Any) -> None:
        super().__init__(**with_metadata(options, enum=list(words)))
        self.words = words

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        if not isinstance(value, str) or value.lower() not in self.words:
            raise ValidationError(Text("Must be one of {words}.", words=", ".join(self.words)))
        return value.lower()
