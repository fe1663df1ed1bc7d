"""Restores a dump into a database: loads it, builds indexes, and replaces the records that were there."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

from service.background import background_task
from service.backup.contents import CONTENTS, RECORDS, SECRETS, TOKENS, WEBHOOKS, Header
from service.backup.format import BackupError
from service.backup.loading import count_loaded_events, create_loaded_indexes, drop_loaded, load, new_prefix
from service.backup.reader import DumpReader
from service.backup.switching import is_marked, mark, switch, unmark
from service.changes.restores import REPLACING
from service.database import Location
from service.migrations import FORM, stored_form
from service.migrations.lease import hold_lease
from service.mongo.abandoned_transactions import keep_aborting
from service.mongo.client import Database
from service.mongo.instance import INSTANCE

LEASE = "restore"
TAKEN_OVER = (
    "another restore has begun, as this one was stopped for too long; this one has replaced nothing. Run it "
    "again if the other one fails"
)


class Restore:
    """Restores a checked dump into a database."""

    def __init__(self, database: Database, location: Location, header: Header, *, replace: bool) -> None:
        self._database, self._location, self._header, self._may_replace = database, location, header, replace
        self._was_marked, self._prefix = False, new_prefix()

    async def run(self, reader: DumpReader, size: int) -> None:
        await stored_form(self._database)  # raises DatabaseTooNew
        if await self._database["meta"].find_one({"_id": LEASE}):
            print("Waiting for another restore; if it was killed, for 30 seconds", file=sys.stderr)
        async with hold_lease(self._database, LEASE) as renew:
            self._was_marked = await is_marked(self._database)
            self._may_replace |= self._was_marked  # an interrupted restore has left a mixture
            await self._refuse_records()
            print(f"Restoring into {self._location}", file=sys.stderr)
            names = await self._replaced()
            try:
                await self._load(reader, names, size)
                await require(renew)
                await self._mark()
                await require(renew)
            except BaseException:
                await drop_loaded(self._database, self._prefix)
                raise
            await self._switch(names)
        await self._report(reader)

    async def _refuse_records(self) -> None:
        if self._may_replace:
            return
        for name in (*RECORDS, *SECRETS):
            if await self._database[name].find_one({}, {"_id": 1}):
                raise BackupError(
                    f"{self._location} has {name}: choose an empty database, or replace everything in it "
                    "with --replace"
                )

    async def _replaced(self) -> list[str]:
        """The collections that are replaced. A dump without tokens leaves those of its own database alone. In
        another one they would belong to the authors of other records."""
        found = await self._database["meta"].find_one(INSTANCE)
        own = (found or {}).get("uuid")
        is_own = own is not None and own == self._header.instance.get("uuid")
        emptied = [] if is_own or self._header.has_tokens else SECRETS
        return list(dict.fromkeys([*CONTENTS, *self._header.collections, *emptied]))

    async def _load(self, reader: DumpReader, names: list[str], size: int) -> None:
        await load(self._database, self._prefix, reader, names, size)
        if self._header.form == FORM:  # otherwise `prepare` does the same when it has upgraded the records
            print("Building indexes", file=sys.stderr)
            await create_loaded_indexes(self._database, self._prefix, names)
            await count_loaded_events(self._database, self._prefix)

    async def _mark(self) -> None:
        """Stop all services; raises BackupError if something was written to the empty database meanwhile."""
        try:
            await mark(self._database)
            await self._refuse_records()
        except BaseException:
            if not self._was_marked:
                await unmark(self._database)
            raise

    async def _switch(self, names: list[str]) -> None:
        try:
            # What crashed processes have locked cannot be renamed.
            async with background_task(keep_aborting(self._database.client)):
                await switch(self._database, self._prefix, self._header, names)
            await unmark(self._database)
        except BaseException:
            print(f"kalends: {REPLACING}", file=sys.stderr)
            raise

    async def _report(self, reader: DumpReader) -> None:
        counts = ", ".join(f"{reader.counts[name]} {name}" for name in RECORDS)
        print(f"Restored the dump of {self._header.taken_utc:%Y-%m-%d %H:%M} UTC: {counts}", file=sys.stderr)
        if await self._database[TOKENS].find_one() is None:
            print("There are no access tokens: create some with `kalends token create`", file=sys.stderr)
        if await self._database[WEBHOOKS].find_one():
            print(
                "Webhooks send what changes from now on: their receivers should read the lists again",
                file=sys.stderr,
            )


async def require(renew: Callable[[], Awaitable[bool]]) -> None:
    """Raise BackupError if another restore has taken the lease."""
    if not await renew():
        raise BackupError(TAKEN_OVER)
