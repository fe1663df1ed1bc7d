"""Checks fields that are computed from others of the same record: protection, cost, position, key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from schemas.kind import Document, Kind
from schemas.kinds.category import CATEGORY
from schemas.kinds.event import EVENT
from schemas.kinds.event_representation import is_locked
from schemas.kinds.venue import VENUE
from schemas.link_refs import name_key
from schemas.values.costs import Currency, read_cost
from service.doctor.findings import REMOVED, Finding, RecordCheck
from service.doctor.scope import Scope

CURRENCY = ("currency_symbol", "currency_code", "currency_position")


async def find_protection(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    found = []
    for event in records:
        locked = is_locked(event)
        if event.get("locked") is locked:
            continue
        subject, id = f"event {event['_id']}", event["_id"]
        if event.get("locked") is True and "password" not in event:
            advice = "send new_password with the editor or the API, which may be empty"
            found.append(
                Finding(subject, "it is protected, but its password is missing", "locked", id, advice=advice)
            )
        else:
            problem = f"locked is {event.get('locked')!r:.40}, but it has {'a' if locked else 'no'} password"
            found.append(Finding(subject, problem, "locked", id, {"locked": locked}))
    return found


async def find_costs(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    found = []
    for event in records:
        right = right_cost(event.get("cost"), scope.site.currency)
        if event.get("cost") != right:
            problem = f"the details of its cost do not match the text {right['text']!r}"
            found.append(Finding(f"event {event['_id']}", problem, "cost", event["_id"], {"cost": right}))
    return found


def right_cost(cost: Any, default: Currency) -> Document:
    """The cost with the details that its text has, in the currency that it had when it was stored."""
    text, details = (cost.get("text"), cost.get("details")) if isinstance(cost, dict) else (cost, None)
    known = details if isinstance(details, dict) else {}
    marks = [mark for name in CURRENCY if isinstance(mark := known.get(name), str)]
    stored = Currency(*marks) if len(marks) == len(CURRENCY) else default
    read = read_cost(text if isinstance(text, str) else "", stored)
    values, shown = read.details["values"], known.get("values")
    # A text such as $5 – $20 does not show the values in between.
    if isinstance(shown, list) and (shown[:1], shown[-1:]) == (values[:1], values[-1:]):
        values = shown
    symbol = read.details["currency_symbol"]
    # In C$5 – $9 either may be the symbol: the prices were sent in another order than they are shown.
    if marks and marks[0] in read.text and stored.code == read.details["currency_code"]:
        symbol = marks[0]
    return {"text": read.text, "details": read.details | {"values": values, "currency_symbol": symbol}}


async def find_positions(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    found = []
    for venue in records:
        latitude, longitude = (coordinate(venue, *names) for names in (("geo_lat", 90), ("geo_lng", 180)))
        point = {"type": "Point", "coordinates": [longitude, latitude]}
        is_lost = any(venue.get(name) is not None for name in ("geo_lat", "geo_lng"))
        if is_lost and None in (latitude, longitude):
            longitude, latitude = coordinates_in(venue.get("point"))
            point["coordinates"] = [longitude, latitude]
        right = {"geo_lat": latitude, "geo_lng": longitude, "point": None if latitude is None else point}
        wrong = {name: value for name, value in right.items() if venue.get(name) != value}
        change = {name: REMOVED if value is None else value for name, value in wrong.items()}
        if change:
            problem = f"its coordinates do not agree: {', '.join(change)}"
            found.append(Finding(f"venue {venue['_id']}", problem, "point", venue["_id"], change))
    return found


def coordinate(venue: Document, name: str, most: int) -> float | None:
    value = venue.get(name)
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and -most <= value <= most
    return value if is_valid else None


def coordinates_in(point: Any) -> tuple[float | None, float | None]:
    """Longitude and latitude of a stored point."""
    match point:
        case {"type": "Point", "coordinates": [int() | float() as longitude, int() | float() as latitude]}:
            return longitude, latitude
    return None, None


async def find_terms(scope: Scope, kind: Kind, records: Sequence[Document]) -> list[Finding]:
    claimed = {claim: None for term in records if isinstance(claim := parent_in(term.get("claim")), int)}
    rows = scope.collection(kind.plural).find({"_id": {"$in": list(claimed)}}, {"_id": 1})
    existing = {0} | {row["_id"] async for row in rows}
    repaired = [term | scope.pending.get((kind.plural, term["_id"]), {}) for term in records]
    found = [finding for term in repaired for finding in wrong_term(kind, term, existing)]
    return [await without_taken(scope, kind, finding) for finding in found]


async def without_taken(scope: Scope, kind: Kind, finding: Finding) -> Finding:
    """The finding, with no claim instead of one that another term has."""
    taken = {"claim": finding.change.get("claim", REMOVED), "_id": {"$ne": finding.id}}
    if taken["claim"] is REMOVED or not await scope.collection(kind.plural).find_one(taken, {"_id": 1}):
        return finding
    problem = f"{finding.problem}, which another {kind.name} has: there are two of the same name"
    return replace(finding, problem=problem, change={"claim": REMOVED})


def wrong_term(kind: Kind, term: Document, existing: set[int]) -> list[Finding]:
    subject, id, key = f"{kind.name} {term['_id']}", term["_id"], name_key(term["name"])
    found = []
    if term.get("key") != key:
        found.append(
            Finding(subject, f"key is {term.get('key')!r:.60}, not {key!r}", "key", id, {"key": key})
        )
    tree = {"parent": term.get("parent"), "ancestors": term.get("ancestors")}
    top = {"parent": 0, "ancestors": []}
    if kind is not CATEGORY and tree != top:
        found.append(Finding(subject, f"it is in a tree: {tree}", "tree", id, top))
    right = f"{term.get('parent') if kind is CATEGORY else 0}:{key}"
    # Below a category that was deleted, a term keeps its claim.
    is_former = parent_in(term.get("claim")) not in existing and str(term.get("claim")).endswith(f":{key}")
    if (
        "claim" in term
        and term["claim"] != right
        and not (is_former and parent_in(term["claim"]) is not None)
    ):
        problem = f"its claim on a name is {term['claim']!r:.60}, not {right!r}"
        found.append(Finding(subject, problem, "claim", id, {"claim": right}))
    return found


def parent_in(claim: Any) -> int | None:
    parent = claim.partition(":")[0] if isinstance(claim, str) else ""
    return int(parent) if parent.isascii() and parent.isdigit() else None


def is_term(kind: Kind) -> bool:
    return not kind.is_post


PROTECTION = RecordCheck(
    "protection",
    "an event is marked as protected without a password, or the other way round: corrected",
    find_protection,
    lambda kind: kind is EVENT,
)
COSTS = RecordCheck(
    "costs",
    "the currency or values of a cost do not match its text: parsed again",
    find_costs,
    lambda kind: kind is EVENT,
)
POSITIONS = RecordCheck(
    "positions",
    "the map position of a venue differs from its coordinates: computed from them",
    find_positions,
    lambda kind: kind is VENUE,
)
TERMS = RecordCheck(
    "terms",
    "the key or claim of a term does not fit its name, or a tag is in a tree: computed from the name",
    find_terms,
    is_term,
)
