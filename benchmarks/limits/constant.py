"""Limit A: bare aiohttp on uvloop. Every request to `/<n>` gets a response of n constant bytes."""

from __future__ import annotations

import os
from functools import cache

import uvloop
from aiohttp import web


@cache
def constant(size: int) -> bytes:
    return b"x" * size


async def answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=constant(int(request.match_info["size"])), content_type="application/json")


def main(port: int) -> None:
    app = web.Application()
    app.router.add_route("*", "/{size}", answer)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None, loop=uvloop.new_event_loop())


if __name__ == "__main__":
    main(int(os.environ["BENCH_PORT"]))
