"""The MongoDB versions that Kalends recommends, and the warning about older ones."""

from __future__ import annotations

from collections.abc import Sequence

import pymongo

from service.mongo.client import close_client, connect

RECOMMENDED_VERSIONS = ((6, 0, 27), (7, 0, 35), (8, 0, 24))
"""The first version of each series with all security fixes known at the time."""
CONNECT_TIMEOUT_SECONDS = 2.0


async def server_version(uri: str) -> tuple[int, ...]:
    """The version of a MongoDB server; raises PyMongoError if it cannot be reached."""
    client = connect(uri)
    try:
        with pymongo.timeout(CONNECT_TIMEOUT_SECONDS):
            build = await client.admin.command("buildInfo")
    finally:
        close_client(client)
    return tuple(build["versionArray"][:3])


def outdated_warning(version: Sequence[int]) -> str | None:
    """The warning about a version that is too old; None if it is recent enough."""
    required = next(
        (oldest for oldest in RECOMMENDED_VERSIONS if oldest[:2] == tuple(version[:2])),
        RECOMMENDED_VERSIONS[-1],
    )
    if tuple(version) >= required:
        return None
    recommended = ", ".join(map(_shown, RECOMMENDED_VERSIONS[:-1]))
    return (
        f"MongoDB {_shown(version)} is older than recommended and may have known vulnerabilities; "
        f"use {recommended}, {_shown(RECOMMENDED_VERSIONS[-1])} or newer"
    )


def _shown(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
