"""Replays what was recorded of the reference service: every difference is one we chose, with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from config import Settings
from schemas.caller import Role
from schemas.site import Site
from schemas.values.zones import parse_zone
from service.app import create_app
from service.store import Store
from tests.conftest import Api
from tests.reference.compare import KINDS, by_rule, differences

HERE = Path(__file__).parent
ROWS = [json.loads(line) for line in (HERE / "requests.jsonl").read_text().splitlines()]
CHOSEN: dict[str, dict[str, Any]] = json.loads((HERE / "differences.json").read_text())
GROUPS = {"main": "UTC", "extra": "UTC", "dates_utc": "UTC", "dates_ny": "America/New_York"}


@dataclass(frozen=True)
class RecordingSite(Site):
    """A site whose clock stands at the moment of the recording."""

    def now(self) -> datetime:
        return datetime(2026, 11, 15, 0, 7, 45)


class Replay:
    """Sends the recorded requests in order, and remembers which of our ids stands for which recorded one."""

    def __init__(self, callers: Mapping[str | None, Api]) -> None:
        self.callers = callers
        self.variables: dict[str, Any] = {"img": 4, "img_s": "4"}
        self.ids: dict[tuple[str | None, int], int] = {}

    def fill(self, value: Any) -> Any:
        """The value with `{{name}}` replaced by the id captured under that name."""
        if isinstance(value, dict):
            return {key: self.fill(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.fill(one) for one in value]
        if isinstance(value, str) and (whole := re.fullmatch(r"\{\{(\w+)\}\}", value)):
            return self.variables[whole[1]]
        if isinstance(value, str):
            return re.sub(r"\{\{(\w+)\}\}", lambda found: str(self.variables[found[1]]), value)
        return value

    async def send(self, row: Mapping[str, Any]) -> tuple[int, Any]:
        pairs: list[tuple[str, str]] = []
        for name, value in (self.fill(row.get("query")) or {}).items():
            pairs += (
                [(f"{name}[]", str(one)) for one in value]
                if isinstance(value, list)
                else [(name, str(value))]
            )
        options: dict[str, Any] = {"params": pairs} if pairs else {}
        body = self.fill(row.get("body"))
        if row.get("encoding") == "form":
            options["data"] = dict(body) if isinstance(body, dict) else [tuple(pair) for pair in body]
        elif row.get("encoding") == "raw":
            options |= {"data": body["__raw__"], "headers": {"Content-Type": "application/json"}}
        elif body is not None:
            options["json"] = body
        return await self.callers[row.get("who")].send(row["method"], self.fill(row["path"]), **options)

    def learn(self, row: Mapping[str, Any], status: int, body: Any) -> None:
        recorded = row["expect"].get("id")
        if recorded is not None and status < 300 and isinstance(body, dict) and "id" in body:
            kind = KINDS.get(row["path"].strip("/").split("/")[0])
            self.ids.setdefault((kind, recorded), body["id"])
            self.variables |= dict.fromkeys(row.get("capture", ()), body["id"])


def chosen_for(name: str) -> tuple[str, Mapping[str, Any]] | None:
    return next(((glob, entry) for glob, entry in CHOSEN.items() if fnmatchcase(name, glob)), None)


async def replayed(group: str, callers: Mapping[str | None, Api]) -> tuple[list[str], set[str]]:
    """The differences that nobody chose, and the chosen ones that were seen."""
    replay, unexplained, seen = Replay(callers), [], set()
    for row in (row for row in ROWS if row["group"] == group):
        if "note" in row:
            secret = {"new_password": row["password"]}
            await callers["admin"].patch(f"/events/{replay.variables[row['event']]}", secret)
            continue
        try:
            status, body = await replay.send(row)
        except KeyError:
            continue  # needs the id of a record that we refused to make
        replay.learn(row, status, body)
        if row["expect"].get("held"):
            continue
        chosen = chosen_for(row["name"])
        want = by_rule(row, row["expect"])
        found = list(differences(row, want, status, body, replay.ids))
        if found and chosen:
            seen.add(chosen[0])
            found = (
                list(differences(row, chosen[1], status, body, replay.ids)) if "status" in chosen[1] else []
            )
        unexplained += [f"{row['name']}: {row['method']} {row['path']} {line}" for line in found]
    return unexplained, seen


@pytest.mark.parametrize("group", GROUPS)
async def test_answers_agree_with_the_reference(aiohttp_client: Any, store: Store, group: str) -> None:
    site = RecordingSite(zone=parse_zone(GROUPS[group]))
    own = Store(store.database, site)
    own.started = True
    client = await aiohttp_client(create_app(Settings(auth="token"), own))
    tokens = {role.value: await own.tokens.create(role.value, role) for role in Role}
    callers: dict[str | None, Api] = {name: Api(client, own, token) for name, token in tokens.items()}
    unexplained, seen = await replayed(group, callers | {None: Api(client, own)})
    await own.close()
    assert unexplained == []
    assert seen


def test_every_chosen_difference_names_its_clause() -> None:
    for glob, entry in CHOSEN.items():
        assert re.match(r"(contract §[1-7]|interface)", entry["clause"]), glob
        assert len(entry["why"]) > 10, glob
        assert any("expect" in row and fnmatchcase(row["name"], glob) for row in ROWS), glob
