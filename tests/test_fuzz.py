"""Requests that nobody thought of, made from the API description; schemathesis.toml says how."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from schemas import KINDS
from schemas.caller import Role
from schemas.site import Site
from service.store import open_store
from tests.checker import agrees, maintain_later
from tests.test_faults import Running, running

pytestmark = pytest.mark.slow

Document = dict[str, Any]
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
SECONDS = 900
# Together more than 2,000 cases; each part fewer than it has now, since a new version may find fewer.
PARTS = {("events",): 1500, ("venues",): 800, ("organizers",): 400, ("categories", "tags", "interface"): 400}


def operations(document: Document, tags: tuple[str, ...]) -> dict[str, Document]:
    """The operations with one of the tags, by method and path."""
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if set(operation["tags"]) & set(tags)
    }


def link(document: Document) -> None:
    """Tells what to do with a record that an answer shows; a document of this version has no word for it."""
    for plural in (kind.plural for kind in KINDS):
        described = operations(document, (plural,))
        links = {
            label.replace("/", " "): {
                "operationRef": "#/paths/{1}/{0}".format(*label.lower().replace("/", "~1").split()),
                "parameters": {name: f"$response.body#/{name}"},
            }
            for label in described
            for name in ("id", "slug")
            if f"{{{name}}}" in label
        }
        for label, operation in described.items():
            if label != f"GET /{plural}":
                for status in operation["responses"].keys() & {"200", "201"}:
                    operation["responses"][status]["x-links"] = links


async def fill(service: Running, token: str) -> None:
    """Two records of each kind, whose IDs schemathesis.toml knows."""
    async with ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
        for kind in sorted(KINDS, key=lambda kind: bool(kind.links)):
            for number in (1, 2):
                body = {name: value for name, value in kind.example.items() if name not in kind.links}
                body[kind.name_field] += f" {number}"
                async with session.post(f"{service.api}/{kind.plural}", json=body) as answer:
                    assert answer.status == 201, await answer.text()


def answers(events: Path) -> dict[str, Counter[int]]:
    """How often each operation was answered with which status."""
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    with events.open() as lines:
        finished = (one["ScenarioFinished"] for one in map(json.loads, lines) if "ScenarioFinished" in one)
        for recorded in (one["recorder"] for one in finished):
            for id, interaction in recorded.get("interactions", {}).items():
                case, answer = recorded["cases"][id]["value"], interaction["response"]
                found[f"{case['method']} {case['path']}"][answer["status_code"] if answer else 0] += 1
    return found


@pytest.mark.parametrize("tags", PARTS, ids="-".join)
async def test_no_request_breaks_the_service_or_its_description(
    mongodb_uri: str, tmp_path: Path, tags: tuple[str, ...]
) -> None:
    database = f"fuzz_{tags[0]}"
    async with open_store(mongodb_uri, database, Site()) as store:
        token = await store.tokens.create("fuzz", Role.EDITOR)
        settings = {"MONGODB_URI": mongodb_uri, "DATABASE": database, "AUTH": "token"}
        async with running(tmp_path / "data", **settings) as service:
            await fill(service, token)
            async with ClientSession() as session, session.get(f"{service.api}/doc") as answer:
                document = await answer.json()
            del document["paths"]["/changes/stream"]  # its responses do not end
            link(document)
            (tmp_path / "doc.json").write_text(json.dumps(document))
            command = [
                *(
                    sys.executable,
                    "-m",
                    "schemathesis.cli",
                    f"--config-file={CONFIGURATION}",
                    "run",
                    "doc.json",
                ),
                *(f"--url={service.api}", f"--header=Authorization: Bearer {token}", "--no-color"),
                *(f"--include-tag={tag}" for tag in tags),
                *("--report-json-path=report.json", "--report-ndjson-path=events.ndjson"),
            ]
            told = await asyncio.to_thread(
                subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
            )
            assert told.returncode == 0, told.stdout + told.stderr
            assert "kalends.errors" not in service.errors.read_text()
        report = json.loads((tmp_path / "report.json").read_text())
        assert {phase["status"] for phase in report["phases"].values()} == {"success"}, report["phases"]
        assert report["operations"]["tested"] == len(operations(document, tags))
        assert report["test_cases"]["generated"] >= PARTS[tags]
        found = answers(tmp_path / "events.ndjson")
        succeeded = {label for label, statuses in found.items() if statuses.keys() & {200, 201}}
        assert operations(document, tags).keys() - succeeded == set()
        await maintain_later(store)
        await agrees(store)
