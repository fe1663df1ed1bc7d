"""Clients generated from /openapi.json work: one in Python, one in TypeScript."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.test_faults import Running

HERE = Path(__file__).parent
PACKAGES = Path(sys.prefix) / "npm" / "node_modules"
"""Where `make clients` installs what package.json names."""


def run(*command: str | Path, where: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=where, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_typescript_client(service: Running, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / "program.ts", tmp_path)
    tools = PACKAGES / ".bin"
    run(tools / "openapi-typescript", f"{service.api}/openapi.json", "-o", "schema.d.ts", where=tmp_path)
    flags = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"]
    run(tools / "tsc", *flags, "program.ts", where=tmp_path)
    run("node", "program.js", service.api, where=tmp_path)


@pytest.fixture
def python_client(service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package that is generated from the description."""
    flags = ["--output-path", "generated_client", "--meta", "none", "--fail-on-warning"]
    run("openapi-python-client", "generate", "--url", f"{service.api}/openapi.json", *flags, where=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return import_module("generated_client")


def test_python_client(service: Running, python_client: Any) -> None:
    models = import_module("generated_client.models")
    names = ("list_events", "create_event", "read_event", "read_event_by_slug")
    list_, create, read, read_by_slug = (
        import_module(f"generated_client.api.events.{name}") for name in names
    )
    with python_client.Client(base_url=service.api) as client:
        assert list_.sync(client=client, order=models.ListEventsOrder.DESC).total == 0
        body = models.EventInput(
            title="Typed concert",
            start_date="2027-06-01 19:00",
            end_date="2027-06-01 22:00",
            cost=15,
            categories=["Concerts", "Open air"],
            venue=models.VenueInput(venue="New Hall", city="Springfield"),
        )
        created = create.sync(client=client, body=body)
        assert isinstance(created, models.Event)
        assert (created.cost_details.values, created.venue.city) == (["15"], "Springfield")
        assert [category.name for category in created.categories] == ["Concerts", "Open air"]
        assert read_by_slug.sync(created.slug, client=client).id == created.id
        assert [event.id for event in list_.sync(client=client, categories=["open-air"]).events] == [
            created.id
        ]

        missing = read.sync_detailed(4711, client=client)
        assert (missing.status_code, type(missing.parsed)) == (404, models.Error)
        assert (missing.parsed.code, missing.parsed.data.status) == ("event-not-found", 404)
        bad = models.EventInput(title=" ", start_date="now", end_date="never")
        refused = create.sync_detailed(client=client, body=bad)
        assert (refused.status_code, refused.parsed.code) == (400, "rest_invalid_param")
        assert set(refused.parsed.data.params.additional_properties) == {"title", "end_date"}
