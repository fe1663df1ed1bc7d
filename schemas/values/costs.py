"""Costs: parses prices, ranges and free text into a display text, a currency and numeric values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from schemas.language import Text
from schemas.values.sanitizing import plain_text

MAX_COST_CHARS = 500
MAX_DIGITS = 20
FREE = ("free", "gratis", "kostenlos", "gratuit", "gratuite", "gratuito")

# Code -> ways to write it, symbol first. A symbol on its own means the first code that lists it.
CURRENCIES: dict[str, tuple[str, ...]] = {
    "USD": ("$", "US$"), "EUR": ("€", "euro", "euros"), "GBP": ("£",), "JPY": ("¥",), "INR": ("₹",),
    "CHF": ("CHF", "Fr", "SFr"), "SEK": ("kr",), "NOK": ("kr",), "DKK": ("kr",),
    "PLN": ("zł",), "CZK": ("Kč",), "HUF": ("Ft",), "RON": ("lei",), "TRY": ("₺",), "BRL": ("R$",),
    "AUD": ("$", "A$", "AU$"), "CAD": ("$", "C$", "CA$"), "NZD": ("$", "NZ$"), "MXN": ("$", "MX$"),
    "ZAR": ("R",), "CNY": ("¥", "CN¥"), "KRW": ("₩",), "RUB": ("₽",), "UAH": ("₴",), "ILS": ("₪",),
    "THB": ("฿",), "VND": ("₫",), "SGD": ("$", "S$"), "HKD": ("$", "HK$"), "IDR": ("Rp",),
}  # fmt: skip
# A single separator before three digits is ambiguous. A comma ("1,000") is a thousands separator; a dot
# ("1.000") is one only in these currencies, which conventionally use a decimal comma, else a decimal point.
COMMA_DECIMALS = ("EUR", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RON", "TRY", "BRL", "VND", "IDR")

LEADING_WORDS = re.compile(r"(?:(?:from|ab|desde|à partir de)\s|[-–—])", re.IGNORECASE)
# The dash in "10,-" is part of the number, not a range separator.
SEPARATOR = re.compile(r"(?<![.,])[-–—]|[;/]|,(?![0-9–—-])|\s(?:to|bis|a|à)\s", re.IGNORECASE)
# A dot belongs to letters ("Fr. 50"), but not to a symbol: "$.50" is fifty cents.
CURRENCY_MARK = r"[^\s0-9.,;/'’–—-]+(?:(?<=[^\W\d_])\.)?"
NUMBER = r"(?:[0-9]+|(?=[.,][0-9]))(?:[.,'’ \u00a0\u202f][0-9]+)*(?:[.,][-–—])?"
PRICE = re.compile(
    rf"(?P<prefix>{CURRENCY_MARK})?\s*(?P<number>{NUMBER})(?P<gap>\s*)(?P<suffix>{CURRENCY_MARK})?"
)


@dataclass(frozen=True)
class Currency:
    """A currency, and which side of the number its symbol goes on."""

    symbol: str = "$"
    code: str = "USD"
    position: str = "prefix"


@dataclass(frozen=True)
class Cost:
    """The text to display, and the currency and values parsed from it."""

    text: str
    details: dict[str, Any]
    sent: str = field(default="", compare=False)
    """The text that it was parsed from."""


class WrittenPrice(NamedTuple):
    """One number as written, with the currency marks before and after it."""

    prefix: str
    number: str
    suffix: str


def read_cost(value: object, site: Currency) -> Cost:
    """Parses a number, a string or a list of these; a bare number is in the site's currency."""
    return _read(_as_text(value, site), site)


# Many events have the same cost. Cached results are shared: callers must not modify them.
@lru_cache(1000)
def _read(sent: str, site: Currency) -> Cost:
    return replace(_parsed(sent, site), sent=sent)


def _parsed(text: str, site: Currency) -> Cost:
    if len(text) > MAX_COST_CHARS:
        raise ValueError(Text("Must have at most {limit} characters.", limit=MAX_COST_CHARS))
    if re.search(r"[\x00\ud800-\udfff]", text):
        raise ValueError(Text("Must not contain NUL characters or unpaired surrogates."))
    text = plain_text(text)
    if text.strip().lower() in FREE:
        return _cost("Free" if text.strip().lower() == "free" else text, site, ["0"])
    return _priced(text, site) or _cost(text if text.strip() else "", site, [])


def _as_text(value: object, site: Currency) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and len(value) > MAX_COST_CHARS:
        raise ValueError(Text("Must have at most {limit} characters.", limit=MAX_COST_CHARS))
    if isinstance(value, list):
        parts = [_one_text(part, site) for part in value]
        return " – ".join(part for part in parts if part.strip())
    return _one_text(value, site)


def _one_text(value: object, site: Currency) -> str:
    if isinstance(value, str):
        return value
    # `not … <` instead of `>=` also rejects NaN and infinity.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 10**MAX_COST_CHARS:
        raise ValueError(Text("Must be a number, text such as $10 or 10 – 20, or a list of these."))
    # `or 0` turns negative zero into 0.
    text = f"{Decimal(str(value or 0)):f}".removesuffix(".0")
    ambiguous = site.code in COMMA_DECIMALS and re.search(r"\.[0-9]{3}$", text)
    return text + "0" if ambiguous else text


def _priced(text: str, site: Currency) -> Cost | None:
    """The parsed cost if the text consists only of prices, else None."""
    lead = LEADING_WORDS.match(text.strip())
    pieces = [piece.strip() for piece in SEPARATOR.split(text.strip()[lead.end() if lead else 0 :])]
    charged = [piece for piece in pieces if piece.lower() not in FREE]
    prices = [price for piece in charged if (price := _price(piece))]
    currency = _currency(prices, site)
    amounts = _amounts(prices, currency) if currency and len(prices) == len(charged) else {}
    if not currency or not amounts:
        return None
    as_written = lead or len(charged) < len(pieces)
    return _cost(text if as_written else _display(amounts), currency, list(amounts))


def _price(piece: str) -> WrittenPrice | None:
    if match := PRICE.fullmatch(piece):
        suffix = match["gap"] + match["suffix"] if match["suffix"] else ""
        return WrittenPrice(match["prefix"] or "", match["number"], suffix)
    return None


def _currency(prices: list[WrittenPrice], site: Currency) -> Currency | None:
    """The currency that all marks can stand for; None if there is none."""
    marks = [mark for price in prices for mark in (price.prefix, price.suffix.strip()) if mark]
    if not marks:
        return site
    shared = set.intersection(*(_codes(mark, site) for mark in marks))
    code = next((code for code in (site.code, *CURRENCIES) if code in shared), None)
    if code is None:
        return None
    is_prefix = any(price.prefix for price in prices)
    return Currency(_symbol(marks[0], code, site), code, "prefix" if is_prefix else "suffix")


def _symbol(mark: str, code: str, site: Currency) -> str:
    if mark in (site.symbol, site.code):
        return site.symbol
    return mark if "$" in mark else CURRENCIES[code][0]


@lru_cache(1000)
def _codes(mark: str, site: Currency) -> set[str]:
    # "Try 10 …" is the English verb, not Turkish lira.
    spelling = mark if mark in ("try", "Try") else mark.rstrip(".").upper()
    codes = {code for code, marks in CURRENCIES.items() if spelling in (code, *map(str.upper, marks))}
    return codes | {site.code} if mark in (site.symbol, site.code) else codes


def _amounts(prices: list[WrittenPrice], currency: Currency) -> dict[str, WrittenPrice]:
    """The prices by numeric value, ascending; empty if one of them is not a valid number."""
    amounts: dict[Decimal, tuple[str, WrittenPrice]] = {}
    for price in _all_marked(prices, currency):
        plain = _plain(price.number, currency.code in COMMA_DECIMALS)
        if plain is None:
            return {}
        amounts.setdefault(Decimal(plain), (plain, price))
    return dict(amounts[amount] for amount in sorted(amounts))


def _all_marked(prices: list[WrittenPrice], currency: Currency) -> list[WrittenPrice]:
    """Adds the currency mark to prices without one: in "10 – 20 €" both are in euros."""
    bare = (
        WrittenPrice("", "", currency.symbol)
        if currency.position == "suffix"
        else WrittenPrice(currency.symbol, "", "")
    )
    style = next((price for price in prices if price.prefix or price.suffix), bare)
    return [
        price if price.prefix or price.suffix else style._replace(number=price.number) for price in prices
    ]


def _display(amounts: dict[str, WrittenPrice]) -> str:
    if list(amounts) == ["0"]:
        return "Free"
    spelled = ["".join(price) for price in amounts.values()]
    return spelled[0] if len(spelled) == 1 else f"{spelled[0]} – {spelled[-1]}"


def _plain(number: str, decimal_comma: bool) -> str | None:
    """The number with a decimal point and no thousands separators; None if its digit groups are invalid."""
    whole, fraction = _split_decimals(number.rstrip("-–—"), decimal_comma)
    groups = re.split(r"[^0-9]", whole)
    marks = set(re.sub(r"[0-9]", "", whole))
    digits = "".join(groups).lstrip("0") or "0"
    is_number = len(marks) <= 1 and _are_thousands(groups) and (digits + fraction).isdigit()
    if not is_number or len(digits + fraction) > MAX_DIGITS:
        return None
    return f"{digits}.{fraction}".rstrip(".") if (digits + fraction).strip("0") else "0"


def _split_decimals(number: str, decimal_comma: bool) -> tuple[str, str]:
    mark = max(".,", key=number.rfind)
    whole, found, fraction = number.rpartition(mark)
    if not found or mark in whole:
        return number, ""
    groups = mark == "," or decimal_comma
    if groups and len(fraction) == 3 and whole.isdigit() and len(whole) <= 3 and whole != "0":
        return number, ""
    return whole, fraction


def _are_thousands(groups: list[str]) -> bool:
    # Indian digit grouping has groups of two: 1,00,000.
    first, *others = groups
    return not others or (
        len(first) <= 3 and len(others[-1]) == 3 and all(len(group) in (2, 3) for group in others)
    )


def _cost(text: str, currency: Currency, values: list[str]) -> Cost:
    details = {
        "currency_symbol": currency.symbol,
        "currency_code": currency.code,
        "currency_position": currency.position,
        "values": values,
    }
    return Cost(text, details)
