"""Slugs: what is left of a name in ASCII."""

from __future__ import annotations

import unicodedata

import pytest

from schemas.values.slugs import slug_of
from tests.conftest import Api

SLUGS = [
    ("Österreich ÄÖÜ_ß", "osterreich-aou_ss", "accents are left out"),
    ("ÅSE Æ Ø Łódź ñ ç", "ase-ae-o-lodz-n-c", "letters of other languages"),
    ("Việt Nam", "viet-nam", "two accents on a letter"),
    ("Москва Йод", "moskva-iod", "Cyrillic"),
    ("Σήμερα", "semera", "Greek"),
    ("東京 한국어", "dong-jing-hangugeo", "Chinese characters and Hangul"),
    ("½ x² ① Ⅳ ﬁn ＡＢＣ", "1-2-x2-1-iv-fin-abc", "other forms of letters and digits"),
    ("a/b . c–d C++", "a-b-c-d-c", "separators and marks"),
    ("I <b>love</b> it", "i-love-it", "tags"),
    ("がいど", "gaido", "voiced kana"),
    ("ガイド・パブ", "gaidopabu", "katakana, and a mark that is no letter"),
    ("ｶﾞｲﾄﾞ ﾊﾟﾌﾞ", "gaido-pabu", "in half width"),
    ("हिन्दी संगीत २०२७", "hindii-sngiit-2027", "vowels of Devanagari, and digits"),
    ("বাংলা", "baanlaa", "Bengali"),
    ("తెలుగు ગુજરાતી", "telugu-gujraatii", "Telugu and Gujarati"),
    ("கொடி", "kotti", "a vowel that is written around its letter"),
]


@pytest.mark.parametrize(("name", "slug"), [row[:2] for row in SLUGS], ids=[row[2] for row in SLUGS])
def test_slug(name: str, slug: str) -> None:
    assert slug_of(name, "event") == slug
    # However its characters are encoded.
    assert slug_of(unicodedata.normalize("NFD", name), "event") == slug


def test_marks_alone_make_no_slug() -> None:
    assert slug_of("\u3099\u309a\u093c\u0301", "event") == "event"


async def test_an_event_with_a_name_in_kana_is_found_by_its_slug(api: Api) -> None:
    event = await api.event("ガイド")
    assert event["slug"] == "gaido"
    assert (await api.get("/events/by-slug/gaido"))[1]["id"] == event["id"]
