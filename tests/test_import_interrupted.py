"""Imports of files that are killed and started again end as if they had not been interrupted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service.store import Store
from tests.checker import agrees, until
from tests.import_runs import Imports, copied
from tests.test_import_calendars import calendar
from tests.test_import_sites import SMALL_BATCHES
from tests.test_importing import Importer

pytestmark = pytest.mark.slow

NUMBER = 300
DAYS = [f"2027-{1 + at // 28:02}-{1 + at % 28:02}" for at in range(NUMBER)]
CSV = "Event Name,Event Start Date,Event Venue Name,Event Tags\n" + "".join(
    f"Event {at},{day},Hall {at % 7},tag {at % 5}\n" for at, day in enumerate(DAYS)
)
SERIES = "UID:s\nSUMMARY:Daily\nDTSTART:20270101T100000Z\nRRULE:FREQ=DAILY;COUNT=200\nLOCATION:Hall\n"
ICALENDAR = calendar(
    *(
        f"UID:{at}\nSUMMARY:Event {at}\nDTSTART:{DAYS[at].replace('-', '')}T100000Z\nLOCATION:Hall {at % 7}\n"
        for at in range(NUMBER - 200)
    ),
    SERIES,
)


@pytest.mark.parametrize(("name", "text"), [("a.csv", CSV), ("a.ics", ICALENDAR)], ids=["csv", "ics"])
async def test_killed_and_started_again(
    name: str, text: str, mongodb_uri: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imports, importer = Imports(mongodb_uri, store, tmp_path, capsys), Importer(mongodb_uri, store, tmp_path)
    (tmp_path / name).write_text(text)
    seen = 0
    for _ in range(3):
        process = importer.started(
            str(tmp_path / name), "--since", "2026-01-01", "--until", "2029-01-01", code=SMALL_BATCHES
        )

        async def has_gone_on(seen: int = seen) -> bool:
            return await store.database["events"].count_documents({}) > seen + 20

        await until(has_gone_on)
        process.kill()
        await asyncio.to_thread(process.communicate)
        seen = len(await imports.records("events"))
    assert seen < NUMBER
    run = await imports.text(name, text)
    (new, changed, same, refused) = run.summary["events"]
    assert (run.status, changed, refused, new + same) == (0, 0, 0, NUMBER)
    # MongoDB may complete a command after the process that sent it was killed.
    assert seen <= same < NUMBER
    assert (await imports.text(name, text)).summary == {"events": (0, 0, NUMBER, 0)}
    await agrees(store)
    async with copied(imports, mongodb_uri) as other:
        assert (await other.text(name, text)).summary == {"events": (NUMBER, 0, 0, 0)}
        for plural in ("events", "venues", "tags"):
            assert names(await imports.records(plural)) == names(await other.records(plural))


def names(records: list[dict[str, Any]]) -> list[Any]:
    """What records say, without what is different in another database."""
    return sorted(
        (record.get("title") or record.get("venue") or record["name"], str(record.get("start_utc")))
        for record in records
    )
