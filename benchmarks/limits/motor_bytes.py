"""Limit B: bare aiohttp and Motor. Reads fetch ready-made bytes by ID; writes write one document."""

from __future__ import annotations

import os
import sys
from typing import Any

from aiohttp import web
from motor.motor_asyncio import AsyncIOMotorClient

Handler = Any


def routes(database: Any, stored: int) -> list[web.RouteDef]:
    """`stored` is the size in bytes of an event as Kalends stores it."""

    async def read(request: web.Request) -> web.Response:
        ids = [int(id) for id in request.query["ids"].split(",")]
        rows = await database[request.match_info["name"]].find({"_id": {"$in": ids}}).to_list(None)
        return web.Response(body=b"".join([row["body"] for row in rows]), content_type="application/json")

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
        web.get("/{name:bench_motor_(listed|item)}", read),
        web.post("/new", create),
        web.patch("/changed/{id}", update),
    ]


async def application() -> web.Application:
    client: Any = AsyncIOMotorClient(os.environ["BENCH_URI"], w="majority")
    app = web.Application()
    app.add_routes(routes(client[os.environ["BENCH_DATABASE"]], int(os.environ["BENCH_STORED"])))
    return app


if __name__ == "__main__":
    web.run_app(application(), host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
