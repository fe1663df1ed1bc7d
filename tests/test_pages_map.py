"""The map: where places are in the picture, what is drawn around them, and which venues are on it."""

from __future__ import annotations

from math import cos, radians

import pytest

from handlers.pages.maps import Place, VenueMap
from handlers.pages.maps.land import Box, land_within, rings
from tests.conftest import Api
from tests.html_reader import HtmlReader

FREIBURG, STRASBOURG = Place("Freiburg", 47.9959, 7.8522, 3), Place("Strasbourg", 48.5734, 7.7521, 1)
CORNERS = [(-90, -180), (90, 180), (0, 0), (89.99, 0), (-33.9, 151.2), (64.1, -21.9)]


def test_places_are_in_the_picture_and_in_proportion() -> None:
    drawn = VenueMap([FREIBURG, STRASBOURG])
    south, north = drawn.markers
    assert south.y > north.y
    assert south.x > north.x
    across = (FREIBURG.longitude - STRASBOURG.longitude) * cos(radians(48.28465))
    down = STRASBOURG.latitude - FREIBURG.latitude
    assert (south.x - north.x) / (south.y - north.y) == pytest.approx(across / down, rel=0.01)
    assert all(0 < one.x < drawn.width and 0 < one.y < drawn.height for one in drawn.markers)
    assert south.radius > north.radius


@pytest.mark.parametrize(("latitude", "longitude"), CORNERS)
def test_any_place_on_earth_has_a_map(latitude: float, longitude: float) -> None:
    drawn = VenueMap([Place("x", latitude, longitude)], 320, 200, 13)
    (marker,) = drawn.markers
    assert (marker.x, marker.y) == (160, 100)
    assert drawn.grid.startswith("M")
    length, kilometres = drawn.scale
    assert 0 < length <= 80
    assert kilometres > 0


def test_the_whole_earth_fits() -> None:
    drawn = VenueMap([Place(f"{at}", *at) for at in CORNERS])
    assert all(-0.1 <= one.x <= drawn.width and -0.1 <= one.y <= drawn.height for one in drawn.markers)
    assert drawn.land.count("M") > 50


def test_the_scale_bar_is_as_long_as_it_says() -> None:
    drawn = VenueMap([FREIBURG, STRASBOURG])
    length, kilometres = drawn.scale
    pixels = drawn.markers[0].y - drawn.markers[1].y
    assert pixels / length * kilometres == pytest.approx(64.2, rel=0.01)  # from latitude to latitude


def test_places_that_cover_each_other_share_a_marker() -> None:
    (marker,) = VenueMap([FREIBURG, FREIBURG._replace(name="Next door", latitude=47.9960)]).markers
    assert ([place.name for place in marker.places], marker.events) == (["Freiburg", "Next door"], 6)
    assert len(VenueMap([FREIBURG, STRASBOURG]).markers) == 2


def test_land_is_cut_at_the_box() -> None:
    """Iceland is an island in a box around it; a box in the Pacific is empty, one in Siberia all land."""
    assert len(list(land_within(Box(-26, 62, -12, 68)))) == 1
    assert list(land_within(Box(-150, -40, -140, -30))) == []
    (all_land,) = land_within(Box(90, 60, 95, 65))
    assert {(round(x), round(y)) for x, y in all_land} == {(90, 60), (95, 60), (95, 65), (90, 65)}
    assert len(rings()) > 100
    for ring in land_within(Box(-10, 35, 30, 60)):
        assert all(-10 <= round(x, 9) <= 30 and 35 <= round(y, 9) <= 60 for x, y in ring)


def test_a_small_area_has_no_outline() -> None:
    assert VenueMap([FREIBURG, STRASBOURG]).land == ""
    assert VenueMap([FREIBURG, Place("Paris", 48.85, 2.35), Place("Rome", 41.9, 12.5)]).land != ""


async def test_the_map_shows_the_venues_of_upcoming_events(api: Api) -> None:
    venue = await api.made("venues", venue="Hall", city="Freiburg", geo_lat=48, geo_lng=7.8)
    far = await api.made("venues", venue="Theatre", city="Rome", geo_lat=41.9, geo_lng=12.5)
    nowhere = await api.made("venues", venue="Nowhere")
    draft = await api.made("venues", venue="Draft", geo_lat=1, geo_lng=1)
    for title in ("A", "B"):
        await api.event(title, venue=[venue["id"], nowhere["id"]], tags=["jazz"])
    await api.event("Far", venue=far["id"])
    await api.event("Over", venue=draft["id"], start_date="2020-01-01", end_date="2020-01-01")
    await api.event("Locked", venue=draft["id"], password="x")
    status, _ = await api.get("//events/map/")
    page = HtmlReader(api.text)
    points = [one["href"] for one in page.of("a") if one.get("class") == "point"]
    assert (status, points) == (200, ["/venue/hall/", "/venue/theatre/"])
    for said in ("Hall, Freiburg: 2 events", "Theatre, Rome: 1 event"):
        assert f"<title>{said}</title>" in api.text
    assert ("Nowhere" in page.text, "Draft" in page.text) == (False, False)
    assert page.text.count("Hall, Freiburg") >= 1
    assert any(one["href"].startswith("https://www.openstreetmap.org/?") for one in page.of("a"))
    assert not [one for _, one in page.elements if "style" in one]
    await api.get("//events/map/", tags="jazz")
    assert ("/venue/hall/" in api.text, "/venue/theatre/" in api.text) == (True, False)
    await api.get("//events/map/", search="nothing")
    assert ("<svg" in api.text, "No upcoming events with a place" in api.text) == (False, True)
