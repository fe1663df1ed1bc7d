"""Events: calendar entries that link to venues, organizers, categories and tags."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from marshmallow import validates_schema

from schemas.fields import Choice, CostField, Flag, Many, Number, Statuses, When, Whole, Zoned, need_both
from schemas.kind import Document, Kind, ListInput
from schemas.kinds.category import CATEGORY
from schemas.kinds.event_representation import FLAGS, LINKED, EventResponse, json_ld, represent
from schemas.kinds.event_times import normalize_times
from schemas.kinds.organizer import ORGANIZER
from schemas.kinds.post import PostInput, describe, flag, normalize_post
from schemas.kinds.tag import TAG
from schemas.kinds.venue import VENUE
from schemas.language import Text
from schemas.links import PostLinks, TermLinks
from schemas.site import Site
from schemas.text_fields import FreeText, Html, Name, SlugText, WebAddress
from schemas.values.costs import read_cost
from schemas.values.dates import Moment

DATE_FILTERS = ("start_date", "end_date", "starts_before", "starts_after", "ends_before", "ends_after")
FEED_BEGINS = timedelta(days=30)
"""How long ago a feed begins unless dates are given."""


class EventInput(PostInput):
    """Request body of an event."""

    title = Name(required=True, metadata=describe(Text("event title"), label=Text("Title")))
    start_date = When(required=True, metadata=describe(Text("start date and time"), label=Text("Start")))
    end_date = When(required=True, metadata=describe(Text("end date and time"), label=Text("End")))
    slug = SlugText(metadata=describe(Text("event slug"), label=Text("Address of the page"), form="more"))
    excerpt = Html(metadata=describe(Text("event excerpt"), label=Text("Summary"), form="more"))
    timezone = Zoned(
        metadata=describe(Text("time zone of the event; by default the site's"), label=Text("Time zone"))
    )
    all_day = Flag(metadata=describe(Text("event lasts the whole day"), label=Text("All day"), default=False))
    cost = CostField(
        metadata=describe(
            Text("event cost: a number, text or a range"),
            label=Text("Cost"),
            help=Text("For example 12, €10 – 15, or free"),
        )
    )
    website = WebAddress(metadata=describe(Text("event website URL"), label=Text("Website")))
    show_map = Flag(metadata=describe(Text("show a map"), form="more"))
    show_map_link = Flag(metadata=describe(Text("show a map link"), form="more"))
    hide_from_listings = Flag(metadata=describe(Text("hide the event from lists"), form="more"))
    sticky = Flag(metadata=describe(Text("make the event sticky in the calendar view"), form="more"))
    featured = Flag(metadata=describe(Text("feature the event on the site"), form="more"))
    categories = TermLinks(
        CATEGORY,
        metadata=describe(Text("category IDs, slugs or names"), label=Text("Categories"), widget="tree"),
    )
    tags = TermLinks(
        TAG,
        metadata=describe(
            Text("tag IDs, slugs or names"), label=Text("Tags"), help=Text("Separated by commas")
        ),
    )
    venue = PostLinks(
        VENUE,
        metadata=describe(
            Text("venue: an ID, the data of a new venue, or an array of these"), label=Text("Venue")
        ),
    )
    organizer = PostLinks(
        ORGANIZER,
        metadata=describe(
            Text("organizer: an ID, the data of a new organizer, or an array of these"),
            label=Text("Organizer"),
            several=True,
        ),
    )
    ticketed = Flag(metadata=describe(Text("tickets are sold for the event"), form="more"))
    post_parent = Whole(metadata=describe(Text("ID of the event that this one is part of"), form="more"))
    password = FreeText(
        200,
        metadata=describe(
            Text("password of the event"),
            label=Text("Password"),
            help=Text("Visitors who do not know it see only the title and the time."),
            form="more",
            widget="password",
        ),
    )
    new_password = FreeText(
        200, metadata=describe(Text("on update: the new password; empty removes it"), form="none")
    )


class EventListInput(ListInput):
    """Query parameters of the event list."""

    start_date = When(
        metadata=describe(
            Text("events that start on this date or later; by default now, in feeds 30 days ago")
        )
    )
    end_date = When(
        metadata=describe(Text("events that end on this date or before; by default in two years"))
    )
    starts_before = When(metadata=describe(Text("events that start before the date")))
    starts_after = When(metadata=describe(Text("events that start after the date")))
    ends_before = When(metadata=describe(Text("events that end before the date")))
    ends_after = When(metadata=describe(Text("events that end after the date")))
    strict_dates = Flag(
        load_default=False,
        metadata=describe(Text("true: times are used as they are; false: date filters cover whole days")),
    )
    search = FreeText(200, metadata=describe(Text("text in the title, description or excerpt")))
    categories = Many(
        FreeText(500, allow_none=False),
        metadata=describe(Text("events in any of these category IDs, slugs or names")),
    )
    tags = Many(
        FreeText(500, allow_none=False),
        metadata=describe(Text("events with any of these tag IDs, slugs or names")),
    )
    venue = Many(Whole(1), metadata=describe(Text("events at any of these venue IDs")))
    organizer = Many(Whole(1), metadata=describe(Text("events of any of these organizer IDs")))
    featured = Flag(metadata=describe(Text("only featured events, or only others")))
    status = Statuses(metadata=describe(Text("only events with these statuses")))
    geoloc = Flag(metadata=describe(Text("only events whose venue has coordinates, or only others")))
    geoloc_lat = Number(
        -90, 90, metadata=describe(Text("latitude of a place; sent together with geoloc_lng"))
    )
    geoloc_lng = Number(
        -180, 180, metadata=describe(Text("longitude of a place; sent together with geoloc_lat"))
    )
    geoloc_radius = Number(
        0, 20038, metadata=describe(Text("maximum distance of the venue from the place, in km"))
    )
    include = Many(Whole(1), metadata=describe(Text("only these event IDs; date filters are ignored")))
    post_parent = Whole(1, metadata=describe(Text("only events that are part of this event ID")))
    ticketed = Flag(metadata=describe(Text("only events with tickets, or only others")))
    orderby = Choice(
        "start_date",
        "end_date",
        "title",
        "date",
        "modified",
        "id",
        metadata=describe(Text("what to sort by")),
    )
    order = Choice("asc", "desc", metadata=describe(Text("sort direction, ascending or descending")))

    @validates_schema(skip_on_field_errors=False)
    def both_coordinates(self, data: Document, **_: Any) -> None:
        need_both(data, "geoloc_lat", "geoloc_lng")


def normalize(changes: Document, stored: Document | None, site: Site) -> Document:
    """The fields to store; the store resolves links and passwords."""
    normalized = normalize_post(changes, stored, site) | normalize_times(changes, stored, site)
    for name in ("start_date", "end_date"):
        normalized.pop(name, None)
    normalized |= {name: flag(name, normalized) for name in FLAGS if name in normalized or stored is None}
    if "cost" in changes or stored is None:
        cost = changes.get("cost") or read_cost("", site.currency)
        normalized["cost"] = {"text": cost.text, "details": cost.details}
        if stored and stored["cost"]["text"] == cost.sent:
            del normalized["cost"]  # sent back: keep its currency and all values, whatever the text tells
    if "post_parent" in changes or stored is None:
        normalized["post_parent"] = changes.get("post_parent") or 0
    return normalized


def feed_query(query: Document, site: Site) -> Document:
    """A feed without dates begins in the past: calendar programs drop events that it no longer contains."""
    if any(query.get(name) is not None for name in DATE_FILTERS):
        return query
    return query | {"start_date": Moment(instant=site.now() - FEED_BEGINS)}


EVENT = Kind(
    name="event",
    plural="events",
    name_field="title",
    id_space="post",
    body_schema=EventInput,
    query_schema=EventListInput,
    response_schema=EventResponse,
    normalize=normalize,
    represent=represent,
    json_ld=json_ld,
    page="event",
    search_fields=("title", "description", "excerpt"),
    embedded_fields=(),
    example={
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
    example_change={"cost": "€18", "featured": True},
    summaries={
        "list": Text("List events"),
        "create": Text("Create an event"),
        "read": Text("Read an event"),
        "update": Text("Update an event"),
        "delete": Text("Delete an event"),
        "readBySlug": Text("Read an event by slug"),
        "updateBySlug": Text("Update an event by slug"),
        "deleteBySlug": Text("Delete an event by slug"),
        "feed": Text("List events in another format"),
        "export": Text("Read an event in another format"),
        "exportBySlug": Text("Read an event by slug in another format"),
    },
    links={name: kind.name for name, kind in LINKED.items()},
    label=Text("Events"),
    form=(
        *("title", "start_date", "end_date", "all_day", "timezone", "venue", "organizer", "categories"),
        *("tags", "description", "image", "website", "cost", "status"),
    ),
    feed_query=feed_query,
)
