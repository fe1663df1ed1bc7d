"""Peer: FastAPI and Beanie on the same collection; run by uvicorn."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from beanie import Document, init_beanie
from beanie.operators import Set
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict, Field
from pymongo import AsyncMongoClient

from benchmarks.conditions import conditions, near
from benchmarks.peers.models import EventBody

TOTALS = os.environ.get("BENCH_TOTALS") != "0"


class Event(EventBody, Document):
    """An event that Kalends created, with its numeric ID."""

    id: int

    class Settings:
        name = "events"


class Venue(Document):
    """A venue that Kalends created."""

    id: int

    class Settings:
        name = "venues"


class VenueId(BaseModel):
    """The projection of a venue to its ID."""

    id: int = Field(alias="_id")


class NewEvent(EventBody, Document):
    """An event that this service creates."""

    class Settings:
        name = "bench_beanie_new"


class ChangedEvent(EventBody, Document):
    """An event that this service updates."""

    id: int

    class Settings:
        name = "bench_beanie_changed"


class EventView(EventBody):
    """The projection of an event that is read and returned."""

    model_config = ConfigDict(populate_by_name=True)
    id: int = Field(alias="_id")


class Page(BaseModel):
    """A page of the list."""

    events: list[EventView]
    total: int | None


class Renaming(BaseModel):
    """Request body of a title change."""

    title: str


@asynccontextmanager
async def database(app: FastAPI) -> AsyncIterator[None]:
    client: Any = AsyncMongoClient(os.environ["BENCH_URI"], w="majority")
    models = [Event, Venue, NewEvent, ChangedEvent]
    await init_beanie(database=client[os.environ["BENCH_DATABASE"]], document_models=models)
    yield
    await client.close()


app = FastAPI(lifespan=database)


@app.get("/events")
async def index(
    since: datetime,
    until: datetime,
    status: str | None = None,
    category: int | None = None,
    venue: int | None = None,
    tag: int | None = None,
    word: str | None = None,
    lat: float | None = None,
    lng: float | None = None,
    angle: float | None = None,
    page: int = 1,
) -> Page:
    venues = None
    if lat is not None and lng is not None and angle is not None:
        venues = [one.id async for one in Venue.find(near(lat, lng, angle)).project(VenueId)]
    wanted = conditions(since, until, status, category, venue, tag, word, venues)
    found = Event.find(wanted)
    total = await found.count() if TOTALS else None
    rows = found.sort("+start_utc", "+_id").skip((page - 1) * 12).limit(12).project(EventView)
    return Page(events=await rows.to_list(), total=total)


@app.get("/events/{id:int}")
async def item(id: int) -> EventView:
    return known(await Event.find_one(Event.id == id).project(EventView))


@app.get("/events/{slug}")
async def item_by_slug(slug: str) -> EventView:
    return known(await Event.find_one(Event.slug == slug).project(EventView))


@app.post("/new", status_code=201)
async def create(event: NewEvent) -> NewEvent:
    return await event.insert()


@app.patch("/changed/{id}")
async def update(id: int, change: Renaming) -> ChangedEvent:
    event = known(await ChangedEvent.get(id))
    await event.update(Set({ChangedEvent.title: change.title}))
    return event


def known(found: Any) -> Any:
    if found is None:
        raise HTTPException(404)
    return found
