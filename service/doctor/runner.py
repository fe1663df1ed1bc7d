"""Runs the checks: finds, confirms, repairs and reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass

import pymongo
from pymongo.errors import OperationFailure

from schemas.errors import Problem
from schemas.kind import Document, Kind
from service.changes.restores import refuse_restore
from service.doctor.findings import REMOVED, Check, DatabaseCheck, Finding, RecordCheck
from service.doctor.mending import mend
from service.doctor.scope import Scope
from service.failures import brief
from service.mongo.client import MALFORMED, batches_by_id

RUN_SECONDS = 24 * 3600
"""Time limit of a run."""
BATCH = 200
"""Records that are checked together."""
MAX_READS = 5
"""How often something that changes all the time is read, to find out whether it is damaged."""
MAX_PENDING = 10_000
"""Records whose repair is remembered if nothing is repaired."""
Find = Callable[[], Awaitable[list[Finding]]]


@dataclass
class Outcome:
    """Numbers of what was found."""

    checked: int = 0
    found: int = 0
    repaired: int = 0


class Examination:
    """One run over a database."""

    def __init__(
        self, scope: Scope, *, repairs: bool, report: Callable[[str], None], show: Callable[[int], None]
    ) -> None:
        self._scope, self._repairs, self._report, self._show = scope, repairs, report, show
        self.outcome = Outcome()

    async def run(self, stages: Sequence[tuple[Kind | None, Sequence[Check]]]) -> None:
        """Run the checks in their order: those of records of a kind together."""
        with pymongo.timeout(RUN_SECONDS):  # single commands may take long, too
            for kind, checks in stages:
                if kind is None:
                    for check in (one for one in checks if isinstance(one, DatabaseCheck)):
                        await self._check_database(check)
                else:
                    wanted = [one for one in checks if isinstance(one, RecordCheck) and one.concerns(kind)]
                    async for batch in self._batches(kind):
                        await refuse_restore(self._scope.database)
                        await self._check_records(kind, wanted, batch)
                        self.outcome.checked += len(batch)
                        self._show(self.outcome.checked)

    async def _batches(self, kind: Kind) -> AsyncIterator[list[Document]]:
        records = self._scope.collection(kind.plural)
        async for batch in batches_by_id(records, {"$gte": 1}, BATCH):
            yield [record for record in batch if isinstance(record["_id"], int)]

    async def _check_database(self, check: DatabaseCheck) -> None:
        await refuse_restore(self._scope.database)

        async def find() -> list[Finding]:
            return await find_all(check, self._scope)

        if found := await self._confirmed(await find(), find):
            await self._conclude(found, find, self._repair_each)

    async def _check_records(
        self, kind: Kind, checks: Sequence[RecordCheck], records: list[Document]
    ) -> None:
        for check in checks:
            found = await find_each(check, self._scope, kind, records)
            if not found:
                continue
            current = {finding.id: Document() for finding in found}

            async def find(
                check: RecordCheck = check, current: dict[int, Document] = current
            ) -> list[Finding]:
                ids = {"_id": {"$in": list(current)}}
                rows = await self._scope.collection(kind.plural).find(ids).to_list(None)
                current |= dict.fromkeys(current, Document()) | {row["_id"]: row for row in rows}
                return await find_each(check, self._scope, kind, rows)

            async def repair(those: Sequence[Finding], current: dict[int, Document] = current) -> None:
                await self._repair_records(kind, those, current)

            left: set[int] = set()
            if confirmed := await self._confirmed(found, find):
                left = await self._conclude(confirmed, find, repair)
                self._note_pending(kind, [finding for finding in confirmed if finding.id in left])
            records = [current.get(one["_id"], one) for one in records]
            records = [one for one in records if one and not (check.is_required and one["_id"] in left)]

    def _note_pending(self, kind: Kind, found: Sequence[Finding]) -> None:
        for finding in found[: MAX_PENDING - len(self._scope.pending)]:
            values = {name: None if one is REMOVED else one for name, one in finding.change.items()}
            self._scope.pending.setdefault((kind.plural, finding.id), {}).update(values)

    async def _confirmed(self, found: list[Finding], find: Find) -> list[Finding]:
        """What is found again after the background work; what changes meanwhile is read several times."""
        for _ in range(MAX_READS):
            if not found:
                break
            before = {finding.key for finding in found}
            await self._scope.catch_up({finding.fanout_of for finding in found if finding.fanout_of})
            found = await find()
            if same := [finding for finding in found if finding.key in before]:
                return same
        return []

    async def _conclude(
        self, found: list[Finding], find: Find, repair: Callable[[Sequence[Finding]], Awaitable[None]]
    ) -> set[int]:
        """Report findings, after repairing them if that is wanted; return the ids of what is left."""
        left: set[Hashable] = {finding.key for finding in found}
        if self._repairs and any(finding.is_repairable for finding in found):
            await repair([finding for finding in found if finding.is_repairable])
            left &= {finding.key for finding in await find()}
        for finding in found:
            self._report(f"{finding.subject}: {finding.problem}{self._ending(finding, finding.key in left)}")
        self.outcome.found += len(found)
        self.outcome.repaired += len(found) - sum(finding.key in left for finding in found)
        return {finding.id for finding in found if finding.key in left}

    def _ending(self, finding: Finding, is_left: bool) -> str:
        if not is_left:
            return "; repaired"
        if not finding.is_repairable:
            return f"; cannot be repaired: {finding.advice}"
        return "; not repaired: it has changed meanwhile, or MongoDB refused it" if self._repairs else ""

    async def _repair_each(self, found: Sequence[Finding]) -> None:
        for finding in found:
            if finding.repair:
                try:
                    await finding.repair()
                except (*MALFORMED, OperationFailure, Problem) as error:
                    self._report(f"{finding.subject}: the repair failed: {brief(error)}")

    async def _repair_records(
        self, kind: Kind, found: Sequence[Finding], records: dict[int, Document]
    ) -> None:
        changes: defaultdict[int, Document] = defaultdict(dict)
        for finding in found:
            if finding.change:
                changes[finding.id] |= finding.change
        for id, change in changes.items():
            try:
                await mend(self._scope, kind, records[id], change)
            except (*MALFORMED, OperationFailure, Problem) as error:
                self._report(f"{kind.name} {id}: the repair failed: {brief(error)}")
        await self._repair_each(found)


async def find_all(check: DatabaseCheck, scope: Scope) -> list[Finding]:
    """Run a check; if it meets a document that cannot even be read, that is a finding, and others run."""
    try:
        return await check.find(scope)
    except MALFORMED as error:
        problem = f"a document has a form that no version has written ({type(error).__name__}: {error})"
        advice = "find it with the MongoDB shell, and correct or remove it"
        return [Finding(f"check of {check.name}", problem, advice=advice)]


async def find_each(
    check: RecordCheck, scope: Scope, kind: Kind, records: Sequence[Document]
) -> list[Finding]:
    """Run a check; if a record cannot even be checked, that is a finding, and the others are checked."""
    try:
        return await check.find(scope, kind, records) if records else []
    except MALFORMED as error:
        if len(records) > 1:
            return [one for record in records for one in await find_each(check, scope, kind, [record])]
        id, cause = records[0]["_id"], f"{type(error).__name__}: {error}"
        problem = f"cannot be read by the check “{check.name}” ({cause})"
        advice = "correct it with the editor or the API, or remove it from the database"
        return [Finding(f"{kind.name} {id}", problem, check.name, id, advice=advice)]
