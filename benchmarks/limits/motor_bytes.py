"""Limit B: bare aiohttp and Motor on uvloop. Lists find ready-made bodies; writes write one document."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import uvloop
from aiohttp import web
from motor.motor_asyncio import AsyncIOMotorClient
from multidict import MultiMapping

from benchmarks.conditions import ORDER, conditions, near
from benchmarks.facts import PER_PAGE

READ: dict[str, Any] = {"status": str, "category": int, "venue": int, "tag": int}
PLACE = ("lat", "lng", "angle")
BODY = {"_id": 0, "body": 1}


def wanted(query: MultiMapping[str]) -> dict[str, Any]:
    """The conditions of a list from its query, without any check."""
    since, until = (datetime.fromisoformat(query[name]) for name in ("since", "until"))
    given: dict[str, Any] = {name: read(query[name]) for name, read in READ.items() if name in query}
    return conditions(since, until, **given)


def routes(database: Any, stored: int) -> list[web.RouteDef]:
    """`stored` is the size in bytes of an event as Kalends stores it."""
    ready, items = database["bench_ready"], database["bench_motor_item"]

    async def listed(request: web.Request) -> web.Response:
        query = wanted(request.query)
        if PLACE[0] in request.query:
            place = near(*(float(request.query[name]) for name in PLACE))
            query["venue._id"] = {"$in": await database["venues"].distinct("_id", place)}
        found = ready.find(query, BODY).sort(ORDER)
        rows = await found.skip((int(request.query["page"]) - 1) * PER_PAGE).limit(PER_PAGE).to_list(PER_PAGE)
        body = '{"events":[' + ",".join([row["body"] for row in rows]) + "]}"
        return web.Response(text=body, content_type="application/json")

    async def item(request: web.Request) -> web.Response:
        row = await items.find_one({"_id": int(request.match_info["id"])})
        return web.Response(body=row["body"], content_type="application/json")

    async def create(request: web.Request) -> web.Response:
        body = await request.read()
        await database["bench_motor_new"].insert_one(
            {"body": body, "rest": bytes(max(0, stored - len(body)))}
        )
        return web.Response(body=body, status=201, content_type="application/json")

    async def update(request: web.Request) -> web.Response:
        body = await request.read()
        one = {"_id": int(request.match_info["id"])}
        await database["bench_motor_changed"].update_one(one, {"$set": {"title": body}})
        return web.Response(body=body, content_type="application/json")

    return [
        web.get("/listed", listed),
        web.get("/item/{id}", item),
        web.post("/new", create),
        web.patch("/changed/{id}", update),
    ]


async def application() -> web.Application:
    client: Any = AsyncIOMotorClient(os.environ["BENCH_URI"], w="majority")
    app = web.Application()
    app.add_routes(routes(client[os.environ["BENCH_DATABASE"]], int(os.environ["BENCH_STORED"])))
    return app


if __name__ == "__main__":
    port = int(os.environ["BENCH_PORT"])
    loop = uvloop.new_event_loop()
    web.run_app(application(), host="127.0.0.1", port=port, access_log=None, print=None, loop=loop)
