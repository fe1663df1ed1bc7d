"""Costs: every spelling of a price, what is shown of it, and the numbers read out of it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.language import Text
from schemas.values.costs import Currency, read_cost
from service.doctor.checks.records.derived import right_cost

SITE = Currency()
EUROS = Currency("€", "EUR", "suffix")

SPELLINGS = [
    (None, "", [], "nothing"),
    ("", "", [], "nothing"),
    ("  ", "", [], "blank"),
    ([], "", [], "nothing"),
    ([""], "", [], "nothing"),
    (10, "$10", ["10"], "a number takes the site's currency"),
    ("10", "$10", ["10"], "so does one in text"),
    (" 10 ", "$10", ["10"], "blanks around"),
    ("$.50", "$.50", ["0.50"], "the dot belongs to the number"),
    (".50", "$.50", ["0.50"], "no digit before the dot"),
    ("Fr.50", "Fr.50", ["50"], "the dot belongs to the letters"),
    ("$,-", "$,-", [], "no digit at all"),
    (9.99, "$9.99", ["9.99"], "a float"),
    (10.0, "$10", ["10"], "a float that is whole"),
    ("$10", "$10", ["10"], "marked"),
    ("$ 10", "$10", ["10"], "a mark before stands at its number"),
    ("$10.50", "$10.50", ["10.50"], "decimals are kept as given"),
    ("£5", "£5", ["5"], "pounds"),
    ("10€", "10€", ["10"], "a mark after"),
    ("10 €", "10 €", ["10"], "with its blank"),
    ("10 Euro", "10 Euro", ["10"], "by name"),
    ("€10,50", "€10,50", ["10.50"], "a comma for decimals, and the euro stays"),
    ("USD 10", "USD10", ["10"], "by code"),
    ("10 eur", "10 eur", ["10"], "by code, lower case"),
    ("$10 CAD", "$10 CAD", ["10"], "a symbol and the code it stands for"),
    ("Fr. 20", "Fr.20", ["20"], "an abbreviation"),
    ("10,- €", "10,- €", ["10"], "a dash for no cents"),
    ("10-20", "$10 – $20", ["10", "20"], "a range"),
    ("$10 - $20", "$10 – $20", ["10", "20"], "a marked range"),
    ("$10 – $20", "$10 – $20", ["10", "20"], "a range as we show it"),
    ("10—20", "$10 – $20", ["10", "20"], "a long dash"),
    ("10 to 20", "$10 – $20", ["10", "20"], "English"),
    ("10 bis 20 €", "10 € – 20 €", ["10", "20"], "German, one mark for both"),
    ("€5 à 7,50", "€5 – €7,50", ["5", "7.50"], "French, one mark for both"),
    ("5€ a 7€", "5€ – 7€", ["5", "7"], "Spanish"),
    ("$20 / $10", "$10 – $20", ["10", "20"], "the lower first"),
    ("100 - 20", "$20 – $100", ["20", "100"], "by number, not by letter"),
    ("$5, $10, $20", "$5 – $20", ["5", "10", "20"], "a list"),
    ("5; 20; 10", "$5 – $20", ["5", "10", "20"], "another list"),
    ("$5,$10", "$5 – $10", ["5", "10"], "a comma before a mark"),
    ("5, 10", "$5 – $10", ["5", "10"], "a comma before a blank"),
    ("10 - 10.00", "$10", ["10"], "the same twice"),
    (["10", "20"], "$10 – $20", ["10", "20"], "an array"),
    ([20, 10, "15.50"], "$10 – $20", ["10", "15.50", "20"], "an array of all sorts"),
    (["10 €"], "10 €", ["10"], "an array of one"),
    (0, "Free", ["0"], "zero is free"),
    ("0", "Free", ["0"], "zero is free"),
    (-0.0, "Free", ["0"], "whatever its sign"),
    ("$0.00", "Free", ["0"], "however it is written"),
    ("0 €", "Free", ["0"], "in any currency"),
    ("Free", "Free", ["0"], "the word"),
    ("FREE", "Free", ["0"], "the word in any case"),
    (["free"], "Free", ["0"], "the word in an array"),
    ("kostenlos", "kostenlos", ["0"], "as written in another language"),
    ("Gratis", "Gratis", ["0"], "as written in another language"),
    ("Gratuit", "Gratuit", ["0"], "as written in another language"),
    ("0 - 20", "$0 – $20", ["0", "20"], "from zero"),
    ("Free - $20", "Free - $20", ["20"], "the word in a range stays as written"),
    ("$1,234.50", "$1,234.50", ["1234.50"], "thousands, English"),
    ("1.234,50 €", "1.234,50 €", ["1234.50"], "thousands, German"),
    ("1'234.50 CHF", "1'234.50 CHF", ["1234.50"], "thousands, Swiss"),
    ("1’234.50 CHF", "1’234.50 CHF", ["1234.50"], "thousands, Swiss, with a typographic mark"),
    ("1 234,50 €", "1 234,50 €", ["1234.50"], "thousands, French"),
    ("1\u00a0234,50\u00a0€", "1\u00a0234,50\u00a0€", ["1234.50"], "with blanks that do not break"),
    ("1\u202f234,50 €", "1\u202f234,50 €", ["1234.50"], "with narrow ones"),
    ("₹1,00,000", "₹1,00,000", ["100000"], "thousands, Indian"),
    ("1,000", "$1,000", ["1000"], "a comma before three digits"),
    ("1,000,000", "$1,000,000", ["1000000"], "a million"),
    ("1.000 €", "1.000 €", ["1000"], "a dot before three digits, where commas are decimal marks"),
    ("R$ 1.000", "R$1.000", ["1000"], "in Brazil too"),
    ("1.000.000", "$1.000.000", ["1000000"], "two dots cannot be decimal marks"),
    ("$1.000", "$1.000", ["1.000"], "a dot before three digits, where it is the decimal mark"),
    ("0,500 €", "0,500 €", ["0.500"], "nobody groups a zero"),
    ("1,5", "$1,5", ["1.5"], "a comma before one digit"),
    ("007", "$007", ["7"], "zeros in front"),
    ("1,000 - 2,500.50", "$1,000 – $2,500.50", ["1000", "2500.50"], "a range of thousands"),
    ("from $10", "from $10", ["10"], "a starting price stays as written"),
    ("Ab 10 €", "Ab 10 €", ["10"], "in German"),
    ("desde 10 €", "desde 10 €", ["10"], "in Spanish"),
    ("à partir de 10,50 €", "à partir de 10,50 €", ["10.50"], "in French"),
    ("-5", "-5", ["5"], "up to five"),
    ("Donation", "Donation", [], "text"),
    ("Pay what you can", "Pay what you can", [], "text"),
    ("Call 555-1234 for prices", "Call 555-1234 for prices", [], "a number that is no price"),
    ("Room 12", "Room 12", [], "a number that is no price"),
    ("Try 10", "Try 10", [], "an invitation, not lira"),
    ("10 TRY", "10 TRY", ["10"], "lira"),
    ("10 €/Person", "10 €/Person", [], "a rate"),
    ("$10 - €20", "$10 - €20", [], "two currencies cannot be compared"),
    ("$10+", "$10+", [], "more than a price"),
    ("10 20", "10 20", [], "no separator, no thousands"),
    ("1,23,4", "1,23,4", [], "groups that make no sense"),
    ("1.234,567,890", "1.234,567,890", [], "groups that make no sense"),
    ("0.5 000", "0.5 000", [], "thousands after the decimal mark"),
    ("10 -", "10 -", [], "half a range"),
    ("-", "-", [], "a dash"),
    ("٥", "٥", [], "digits that are not ASCII"),
    ("<b>10</b>", "$10", ["10"], "tags are removed"),
    ("1" * 30, "1" * 30, [], "no price has thirty digits"),
]

CURRENCIES = [
    ("10", SITE, ("$", "USD", "prefix")),
    ("10", EUROS, ("€", "EUR", "suffix")),
    ("", EUROS, ("€", "EUR", "suffix")),
    ("Donation", EUROS, ("€", "EUR", "suffix")),
    ("€10,50", SITE, ("€", "EUR", "prefix")),
    ("10€", SITE, ("€", "EUR", "suffix")),
    ("10 euros", SITE, ("€", "EUR", "suffix")),
    ("USD 10", EUROS, ("$", "USD", "prefix")),
    ("10 AUD", SITE, ("$", "AUD", "suffix")),
    ("A$10", SITE, ("A$", "AUD", "prefix")),
    ("$10 CAD", SITE, ("$", "CAD", "prefix")),
    ("$10", Currency("$", "CAD"), ("$", "CAD", "prefix")),
    ("100 kr", SITE, ("kr", "SEK", "suffix")),
    ("100 kr.", Currency("kr", "DKK", "suffix"), ("kr", "DKK", "suffix")),
    ("R$ 5", SITE, ("R$", "BRL", "prefix")),
    ("5 zł", SITE, ("zł", "PLN", "suffix")),
    ("5 Kč", SITE, ("Kč", "CZK", "suffix")),
    ("500 Ft", SITE, ("Ft", "HUF", "suffix")),
    ("5 lei", SITE, ("lei", "RON", "suffix")),
    ("CHF 5", SITE, ("CHF", "CHF", "prefix")),
    ("¥500", SITE, ("¥", "JPY", "prefix")),
    ("500 CNY", SITE, ("¥", "CNY", "suffix")),
    ("₩5", SITE, ("₩", "KRW", "prefix")),
    ("₽5", SITE, ("₽", "RUB", "prefix")),
    ("₺5", SITE, ("₺", "TRY", "prefix")),
    ("₴5", SITE, ("₴", "UAH", "prefix")),
    ("₪5", SITE, ("₪", "ILS", "prefix")),
    ("5 ₫", SITE, ("₫", "VND", "suffix")),
    ("฿5", SITE, ("฿", "THB", "prefix")),
    ("₿5", Currency("₿", "BTC"), ("₿", "BTC", "prefix")),
]

REFUSED = [
    ({"cost": 10}, "an object"),
    (True, "a boolean"),
    ([False], "a boolean in an array"),
    ([["10"]], "an array in an array"),
    ([None], "nothing in an array"),
    (float("nan"), "not a number"),
    (float("inf"), "infinite"),
    ([float("-inf")], "infinite in an array"),
    (10**5000, "a number too long to write"),
    ("x" * 501, "too long"),
    (["x" * 300] * 2, "too long together"),
    ("1\x000", "NUL"),
    ("\ud800", "a lone surrogate"),
    (b"10", "bytes"),
]


@pytest.mark.parametrize(
    ("value", "text", "values", "why"), SPELLINGS, ids=[str(row[0]) for row in SPELLINGS]
)
def test_reads(value: object, text: str, values: list[str], why: str) -> None:
    cost = read_cost(value, SITE)
    assert cost.text == text, why
    assert cost.details["values"] == values, why


@pytest.mark.parametrize(
    ("value", "text", "values", "why"), SPELLINGS, ids=[str(row[0]) for row in SPELLINGS]
)
def test_what_is_shown_can_be_sent_back(value: object, text: str, values: list[str], why: str) -> None:
    again = read_cost(read_cost(value, SITE).text, SITE)
    assert again.text == text, why
    # A list is shown by its two ends.
    assert again.details["values"] == (values if len(values) < 3 else [values[0], values[-1]]), why


@pytest.mark.parametrize(("value", "site", "expected"), CURRENCIES)
def test_names_the_currency(value: str, site: Currency, expected: tuple[str, str, str]) -> None:
    details = read_cost(value, site).details
    assert list(details) == ["currency_symbol", "currency_code", "currency_position", "values"]
    assert tuple(details.values())[:3] == expected


@pytest.mark.parametrize(("value", "why"), REFUSED, ids=[row[-1] for row in REFUSED])
def test_refuses(value: object, why: str) -> None:
    with pytest.raises(ValueError) as refusal:
        read_cost(value, SITE)
    assert isinstance(refusal.value.args[0], Text), why


@pytest.mark.parametrize(
    ("value", "text"),
    [(10, "10€"), ("10-20", "10€ – 20€"), ("$5", "$5"), ("1.000", "1.000€"), (1.125, "1.1250€")],
)
def test_shows_a_bare_number_as_the_site_does(value: object, text: str) -> None:
    assert read_cost(value, EUROS).text == text


def test_a_fraction_sent_as_a_number_is_never_taken_for_thousands() -> None:
    assert read_cost(1.125, EUROS).details["values"] == ["1.1250"]
    assert read_cost(1.125, SITE).details["values"] == ["1.125"]


amounts = st.decimals(0, 10**9, places=2)
sites = st.sampled_from(
    [SITE, EUROS, Currency("CHF", "CHF"), Currency("kr", "NOK", "suffix"), Currency("₿", "BTC")]
)


@given(st.lists(amounts, min_size=1, max_size=5), sites)
def test_numbers_come_back_ascending_and_plain(numbers: list[Decimal], site: Currency) -> None:
    values = read_cost([f"{number:,}" for number in numbers], site).details["values"]
    assert [Decimal(value) for value in values] == sorted(set(numbers))


@given(st.lists(amounts, min_size=1, max_size=2), sites)
def test_prices_survive_being_sent_back(numbers: list[Decimal], site: Currency) -> None:
    cost = read_cost([str(number) for number in numbers], site)
    assert read_cost(cost.text, site) == cost or cost.text == "Free"


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=400)
    | st.from_regex(r"[0-9$€., \-–/a]{0,60}", fullmatch=True),
    sites,
)
def test_any_text_has_a_stable_reading(text: str, site: Currency) -> None:
    cost = read_cost(text, site)
    assert read_cost(cost.text, site).text == cost.text
    assert cost.details["values"] == sorted(cost.details["values"], key=Decimal)


@pytest.mark.parametrize(
    "filler", ["1,", "1 ", " ", "$", "1-", "-", "a ", "'1", "1.-", "\u00a0", " a", "1 a "]
)
def test_repetitive_text_is_read_like_any_other(filler: str) -> None:
    text = (filler * 500)[:499] + "x"
    assert read_cost(text, SITE).text == text


@pytest.mark.parametrize("sent", ["C$10 to $5", "$5 – C$10", "10 – 20 €", "Fr. 5 – CHF 9"])
def test_the_doctor_finds_nothing_in_a_cost_as_it_was_stored(sent: str) -> None:
    cost = read_cost(sent, SITE)
    stored = {"text": cost.text, "details": cost.details}
    assert right_cost(stored, SITE) == stored
