"""Marshmallow fields for the parameter types of the interface, with their error messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields
from marshmallow.experimental.context import Context

from schemas.language import Text
from schemas.site import Site
from schemas.text_fields import clean, error_text, web_address, with_metadata
from schemas.values.costs import read_cost
from schemas.values.dates import parse_moment
from schemas.values.zones import parse_zone

MAX_INT64 = 2**63 - 1
TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def site() -> Site:
    """The site whose settings apply, from the marshmallow context."""
    return Context[Site].get()


class Flag(fields.Boolean):
    """A boolean in any of the spellings that clients use."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        word = str(value).lower() if isinstance(value, bool | int | str) else ""
        if word not in TRUE | FALSE:
            raise ValidationError(Text("Must be true or false."))
        return word in TRUE


def whole(value: Any, least: int = 0) -> int:
    """A 64-bit integer, sent as a JSON integer or as decimal digits."""
    if isinstance(value, str) and (digits := re.fullmatch(r"(-?)([0-9]+)", value)):
        value = int(digits[1] + (digits[2].lstrip("0")[:20] or "0"))  # twenty digits are more than 64 bits
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValidationError(Text("Must be a whole number of at least {least}.", least=least))
    if value > MAX_INT64:
        raise ValidationError(Text("Must be a whole number of at most {most}.", most=MAX_INT64))
    return value


class Whole(fields.Integer):
    """A 64-bit integer with a lower bound."""

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
    """Requires both coordinates or neither."""
    missing = [name for name in (latitude, longitude) if data.get(name) is None]
    if len(missing) == 1:
        raise ValidationError(Text("Must be sent together with the other coordinate."), missing[0])


class Status(fields.String):
    """A publication status: letters, digits, hyphens and underscores."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", value):
            raise ValidationError(Text("Must be 1 to 40 letters, digits, hyphens or underscores."))
        return value


class Picture(fields.String):
    """An image: an ID, a URL, or an image object as found in responses."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**with_metadata(options, one_of=(fields.String(), fields.Integer())))

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        if isinstance(value, Mapping):
            named = value.keys() & {"url", "id"}
            value = (value.get("url") or value.get("id") or "") if named else value
        if value in ("", "0", "false") or value == 0:  # also matches False
            return None
        if re.fullmatch(r"[0-9]{1,19}", str(value)) and not isinstance(value, bool):
            return {"id": whole(value, 1), "url": None}
        return {"id": None, "url": web_address(value)}


class Zoned(fields.String):
    """A time zone; an empty string means the site's."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        try:
            return parse_zone(clean(value)) if value != "" else site().zone
        except ValueError as error:
            raise ValidationError(error_text(error)) from None


class When(fields.String):
    """A date, a date with a time, a timestamp or a relative date."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        try:
            return parse_moment(value, site().now(), site().zone)
        except ValueError as error:
            raise ValidationError(error_text(error)) from None


class CostField(fields.Raw):
    """A cost: a number, a string, or a list of these."""

    repeats = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**with_metadata(options, one_of=(fields.String(), fields.Float())))

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        try:
            return read_cost(value, site().currency)
        except ValueError as error:
            raise ValidationError(error_text(error)) from None


def spread(value: Any) -> list[Any]:
    """Splits an array, a comma-separated string or a single value into a list. Array items are not split at
    commas."""
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    stripped = [item.strip() if isinstance(item, str) else item for item in items]
    return [item for item in stripped if item not in ("", None)]


class Many(fields.List[Any]):
    """A list of simple values, as an array or comma-separated; duplicates are removed."""

    repeats = True

    def __init__(self, inner: fields.Field[Any], limit: int = 200, **options: Any) -> None:
        super().__init__(inner, **options)
        self.limit = limit

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        parts = spread(value)
        if len(parts) > self.limit:
            raise ValidationError(Text("Must have at most {limit} items.", limit=self.limit))
        read = [self.inner.deserialize(part, attr, data, **options) for part in parts]
        return [item for index, item in enumerate(read) if item not in read[:index]]


class Statuses(fields.String):
    """Comma-separated publication statuses; the interface specifies one string, not an array."""

    repeats = True

    def _deserialize(self, value: Any, attr: Any, data: Any, **options: Any) -> Any:
        return Many(Status()).deserialize(value, attr, data, **options)


class Choice(fields.String):
    """One of a fixed set of words, case-insensitive."""

    def __init__(self, *words: str, **options: Any) -> None:
        super().__init__(**with_metadata(options, enum=list(words)))
        self.words = words

    def _deserialize(self, value: Any, attr: Any, data: Any, **_: Any) -> Any:
        if not isinstance(value, str) or value.lower() not in self.words:
            raise ValidationError(Text("Must be one of {words}.", words=", ".join(self.words)))
        return value.lower()
