"""Calendar programs that subscribe to a feed show what the JSON list shows: vdirsyncer and khal, and ical.js,
with which Thunderbird reads calendars."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from handlers import feeds
from tests.clients.test_clients import HERE, PACKAGES
from tests.conftest import Api
from tests.feed_events import SINCE, Shown, days, expected, random_events

SYNC = """
[general]
status_path = "{here}/status"
[pair feed]
a = "remote"
b = "local"
collections = null
[storage remote]
type = "http"
url = "{url}"
[storage local]
type = "filesystem"
path = "{here}/calendar"
fileext = ".ics"
"""
KHAL = """
[calendars]
[[feed]]
path = {here}/calendar
readonly = True
[locale]
local_timezone = UTC
default_timezone = UTC
timeformat = %H:%M:%S
dateformat = %Y-%m-%d
longdateformat = %Y-%m-%d
datetimeformat = %Y-%m-%d %H:%M:%S
longdatetimeformat = %Y-%m-%d %H:%M:%S
[sqlite]
path = {here}/khal.db
"""


async def output(*command: str | Path, where: Path) -> str:
    """What a program prints; it runs beside the service, which is in this process."""
    environment = {
        **os.environ,
        "HOME": str(where),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    process = await asyncio.create_subprocess_exec(
        *command, cwd=where, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=-1, stderr=-1
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, (out + errors).decode()
    return out.decode()


@pytest.fixture(params=["short", "long"])
async def rows(request: pytest.FixtureRequest, api: Api, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Random events, whose feeds are written in the way of short and of long ones."""
    monkeypatch.setattr(feeds, "MAX_SHORT_FEED", 60 if request.param == "short" else 5)
    return await random_events(api, seed=10 + len(request.param), number=60)


async def test_vdirsyncer_and_khal(api: Api, rows: list[Any], tmp_path: Path) -> None:
    url = str(api.client.make_url(f"{api.store.site.namespace}/events.ics").with_query(SINCE))
    (tmp_path / "sync.conf").write_text(SYNC.format(here=tmp_path, url=url))
    (tmp_path / "khal.conf").write_text(KHAL.format(here=tmp_path))
    (tmp_path / "calendar").mkdir()
    for step in ("discover", "sync"):
        await output("vdirsyncer", "--config", "sync.conf", step, where=tmp_path)
    assert len(list((tmp_path / "calendar").iterdir())) == len(rows)
    fields = [f"--json={name}" for name in ("url", "title", "start-long", "end-long")]
    printed = await output(
        "khal", "--config", "khal.conf", "list", "--once", *fields, "2027-01-01", "365d", where=tmp_path
    )
    found = [event for line in printed.splitlines() for event in json.loads(line)]
    texts = {event["url"]: [event[name] for name in ("title", "start-long", "end-long")] for event in found}
    for url, wanted in expected(rows).items():
        # Khal gives an hour to events that end when they start.
        end = texts[url][2] if wanted.start == wanted.end and not wanted.is_all_day else wanted.end
        assert texts.pop(url) == [wanted.title, wanted.start, end]
    assert not texts


async def test_ical_js(api: Api, rows: list[Any], tmp_path: Path) -> None:
    assert (await api.get("/events.ics", **SINCE))[0] == 200
    (tmp_path / "events.ics").write_text(api.text, newline="")
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    shutil.copy(HERE / "calendar.mjs", tmp_path)
    found = json.loads(await output("node", "calendar.mjs", "events.ics", where=tmp_path))
    assert {event["url"]: shown(event) for event in found} == expected(rows)


def shown(event: dict[str, Any]) -> Shown:
    if event["isAllDay"]:
        return days(event["title"], event["start"], event["end"])
    start, end = (event[name].replace("T", " ").rstrip("Z") for name in ("start", "end"))
    return Shown(event["title"], False, start, end)
