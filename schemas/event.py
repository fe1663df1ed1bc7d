"""Events: calendar entries that link to venues, organizers, categories and tags."""

from __future__ import annotations

from typing import Any

from marshmallow import validates_schema

from schemas.category import CATEGORY
from schemas.costs import read_cost
from schemas.event_view import FLAGS, LINKED, EventShape, json_ld, represent
from schemas.fields import Choice, Flag, Many, Number, Price, Statuses, When, Whole, Zoned, need_both
from schemas.kind import Document, Kind, ListInput
from schemas.language import Text
from schemas.links import PostLinks, TermLinks
from schemas.organizer import ORGANIZER
from schemas.post import PostInput, about, flag, settle_post
from schemas.site import Site
from schemas.tag import TAG
from schemas.text_fields import Html, Name, SlugText, WebAddress, Words
from schemas.timing import settle_times
from schemas.venue import VENUE


class EventInput(PostInput):
    """Request body of an event."""

    title = Name(required=True, metadata=about(Text("event title")))
    start_date = When(required=True, metadata=about(Text("start date and time")))
    end_date = When(required=True, metadata=about(Text("end date and time")))
    slug = SlugText(metadata=about(Text("event slug")))
    excerpt = Html(metadata=about(Text("event excerpt")))
    timezone = Zoned(metadata=about(Text("time zone of the event; by default the site's")))
    all_day = Flag(metadata=about(Text("event lasts the whole day"), default=False))
    cost = Price(metadata=about(Text("event cost: a number, text or a range")))
    website = WebAddress(metadata=about(Text("event website URL")))
    show_map = Flag(metadata=about(Text("show a map")))
    show_map_link = Flag(metadata=about(Text("show a map link")))
    hide_from_listings = Flag(metadata=about(Text("hide the event from lists")))
    sticky = Flag(metadata=about(Text("make the event sticky in the calendar view")))
    featured = Flag(metadata=about(Text("feature the event on the site")))
    categories = TermLinks(CATEGORY, metadata=about(Text("category IDs, slugs or names")))
    tags = TermLinks(TAG, metadata=about(Text("tag IDs, slugs or names")))
    venue = PostLinks(
        VENUE, metadata=about(Text("venue: an ID, the data of a new venue, or an array of these"))
    )
    organizer = PostLinks(
        ORGANIZER, metadata=about(Text("organizer: an ID, the data of a new organizer, or an array of these"))
    )
    ticketed = Flag(metadata=about(Text("tickets are sold for the event")))
    post_parent = Whole(metadata=about(Text("ID of the event that this one is part of")))
    password = Words(200, metadata=about(Text("password of the event")))
    new_password = Words(200, metadata=about(Text("on update: the new password; empty removes it")))


class EventListInput(ListInput):
    """Query parameters of the event list."""

    start_date = When(metadata=about(Text("events that start on this date or later; by default now")))
    end_date = When(metadata=about(Text("events that end on this date or before; by default in two years")))
    starts_before = When(metadata=about(Text("events that start before the date")))
    starts_after = When(metadata=about(Text("events that start after the date")))
    ends_before = When(metadata=about(Text("events that end before the date")))
    ends_after = When(metadata=about(Text("events that end after the date")))
    strict_dates = Flag(
        load_default=False,
        metadata=about(Text("true: times are used as they are; false: date filters cover whole days")),
    )
    search = Words(200, metadata=about(Text("text in the title, description or excerpt")))
    categories = Many(
        Words(500, allow_none=False),
        metadata=about(Text("events in any of these category IDs, slugs or names")),
    )
    tags = Many(
        Words(500, allow_none=False), metadata=about(Text("events with any of these tag IDs, slugs or names"))
    )
    venue = Many(Whole(1), metadata=about(Text("events at any of these venue IDs")))
    organizer = Many(Whole(1), metadata=about(Text("events of any of these organizer IDs")))
    featured = Flag(metadata=about(Text("only featured events, or only others")))
    status = Statuses(metadata=about(Text("only events with these statuses")))
    geoloc = Flag(metadata=about(Text("only events whose venue has coordinates, or only others")))
    geoloc_lat = Number(-90, 90, metadata=about(Text("latitude of a place; sent together with geoloc_lng")))
    geoloc_lng = Number(
        -180, 180, metadata=about(Text("longitude of a place; sent together with geoloc_lat"))
    )
    geoloc_radius = Number(
        0, 20038, metadata=about(Text("maximum distance of the venue from the place, in km"))
    )
    include = Many(Whole(1), metadata=about(Text("only these event IDs; date filters are ignored")))
    post_parent = Whole(1, metadata=about(Text("only events that are part of this event ID")))
    ticketed = Flag(metadata=about(Text("only events with tickets, or only others")))
    orderby = Choice(
        "start_date", "end_date", "title", "date", "modified", "id", metadata=about(Text("what to sort by"))
    )
    order = Choice("asc", "desc", metadata=about(Text("sort direction, ascending or descending")))

    @validates_schema(skip_on_field_errors=False)
    def both_coordinates(self, data: Document, **_: Any) -> None:
        need_both(data, "geoloc_lat", "geoloc_lng")


def settle(changes: Document, stored: Document | None, site: Site) -> Document:
    """The fields to store; the store resolves links and passwords."""
    settled = settle_post(changes, stored, site) | settle_times(changes, stored, site)
    for name in ("start_date", "end_date"):
        settled.pop(name, None)
    settled |= {name: flag(name, settled) for name in FLAGS if name in settled or stored is None}
    if "cost" in changes or stored is None:
        cost = changes.get("cost") or read_cost("", site.currency)
        settled["cost"] = {"text": cost.text, "details": cost.details}
        if stored and stored["cost"]["text"] == cost.text:
            del settled["cost"]  # unchanged: keep its currency, even if the site's has changed since
    if "post_parent" in changes or stored is None:
        settled["post_parent"] = changes.get("post_parent") or 0
    return settled


EVENT = Kind(
    name="event",
    plural="events",
    title="title",
    ids="post",
    schema=EventInput,
    query=EventListInput,
    shape=EventShape,
    settle=settle,
    represent=represent,
    json_ld=json_ld,
    page="event",
    searched=("title", "description", "excerpt"),
    copied=(),
    sample={
        "title": "Summer concert",
        "start_date": "2027-06-01 19:00:00",
        "end_date": "2027-06-01 22:00:00",
        "timezone": "Europe/Paris",
        "cost": "€15",
        "categories": ["Concerts"],
        "tags": ["outdoor"],
        "venue": {"venue": "Grand Hall", "city": "Springfield"},
        "organizer": [{"organizer": "City Arts Council"}],
    },
    sample_change={"cost": "€18", "featured": True},
    summaries={
        "list": Text("List events"),
        "create": Text("Create an event"),
        "read": Text("Read an event"),
        "update": Text("Update an event"),
        "delete": Text("Delete an event"),
        "readBySlug": Text("Read an event by slug"),
        "updateBySlug": Text("Update an event by slug"),
        "deleteBySlug": Text("Delete an event by slug"),
    },
    links={name: kind.name for name, kind in LINKED.items()},
)
