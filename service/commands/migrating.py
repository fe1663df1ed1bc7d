"""`kalends migrate`: upgrade the database to the stored form of this version."""

from __future__ import annotations

import sys

from config import Settings
from service.database import located
from service.migrations import FORM, prepare, stored_form
from service.progress import Progress
from service.store.mongo.client import connect


async def migrate_database(settings: Settings) -> None:
    """Upgrade the database and print the result."""
    async with located(settings) as location:
        client = connect(location.uri)
        try:
            database = client[location.database]
            if await stored_form(database) in (0, FORM):
                print(
                    f"Nothing to do: {location} is empty or has stored form {FORM}",
                    file=sys.stderr,
                )
                return
            print(f"Upgrading {location}", file=sys.stderr)
            progress = Progress(sys.stderr, 100)

            def report(step: str, done: int, total: int) -> None:
                progress.show(100 * done // max(total, 1), done)

            await prepare(database, report)
            progress.clear()
            print(f"{location} has the stored form {FORM} now", file=sys.stderr)
        finally:
            client.close()
