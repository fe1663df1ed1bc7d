"""`kalends migrate`: upgrade the database to the stored form of this version."""

from __future__ import annotations

import sys

from config import Settings
from service.database import connected, located
from service.migrations import FORM, prepare, stored_form
from service.progress import Progress


async def migrate_database(settings: Settings) -> None:
    """Upgrade the database and print the result."""
    async with located(settings) as location, connected(location) as database:
        if await stored_form(database) in (0, FORM):
            print(f"Nothing to do: {location} is empty or up to date (stored form {FORM})", file=sys.stderr)
            return
        print(f"Upgrading {location}", file=sys.stderr)
        await prepare(database, StepProgress().show)
        print(f"{location} has the stored form {FORM} now", file=sys.stderr)


class StepProgress:
    """Shows the progress of one step after the other."""

    def __init__(self) -> None:
        self._step, self._progress = "", Progress(sys.stderr, 0)

    def show(self, step: str, done: int, total: int) -> None:
        if step != self._step:
            self._step, self._progress = step, Progress(sys.stderr, total)
            self._progress.print_line(f"{step[:1].upper()}{step[1:]}")
        self._progress.show(done, done)
        if done >= total:
            self._progress.clear()
