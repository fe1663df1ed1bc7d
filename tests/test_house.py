"""The rules of the house: imports run one way, and the recipe for a new kind works."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "config": {"config"},
    "schemas": {"schemas"},
    "handlers": {"handlers", "schemas"},
    "service": {"config", "handlers", "schemas", "service"},
}
FILES = [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_imports_run_one_way() -> None:
    for path in FILES:
        package = path.relative_to(ROOT).parts[0]
        ours = {name.split(".")[0] for name in imported(path)} & MAY_IMPORT.keys()
        assert ours <= MAY_IMPORT[package], path


FLOORS = (
    ("service.mongo",),
    ("service.changes",),
    ("service.migrations",),
    ("service.search", "service.tokens", "service.undo"),
    ("service.store.links",),
    ("service.store.records", "service.store.lists"),
    ("service.store",),
)
"""The database layer, from the lowest floor up; the rest of the service is above it, without these."""
HELPERS = {"service.background", "service.failures", "service.passwords"}


def room(module: str) -> tuple[int, str]:
    """The floor that a module is on, and its package or module there; (-1, "") if it is elsewhere."""
    for floor, rooms in enumerate(FLOORS):
        for name in rooms:
            if module == name or module.startswith(f"{name}."):
                return floor, name
    return -1, ""


def test_imports_of_the_database_layer_run_one_way() -> None:
    """A room imports from itself and from lower floors."""
    for path in FILES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        floor, own = room(module)
        for name in imported(path) if own else ():
            other, its_room = room(name)
            is_outside = name.startswith("service") and not its_room
            assert name in HELPERS if is_outside else other < floor or its_room == own, (path, name)


@pytest.mark.parametrize(
    ("library", "home"),
    [("motor", "service/mongo"), ("aiohttp_apispec", "handlers/docs/api_description.py")],
)
def test_a_library_has_one_user(library: str, home: str) -> None:
    users = [path for path in FILES if any(name.split(".")[0] == library for name in imported(path))]
    assert users
    assert all(str(path.relative_to(ROOT)).startswith(home) for path in users), users


def test_files_are_small() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    database = ("service/store/", "service/changes/", "service/mongo/")
    most = {name: 200 if name.startswith(database) else 300 for name in lengths}
    assert {name: length for name, length in lengths.items() if length > most[name]} == {}


def test_folders_are_small() -> None:
    modules = Counter(str(path.parent.relative_to(ROOT)) for path in FILES if path.name != "__init__.py")
    assert {name: number for name, number in modules.items() if number > 16} == {}


@pytest.mark.slow
def test_recipe_for_a_sixth_kind(tmp_path: Path) -> None:
    """Follows CONTRIBUTING.md on a copy of the house, then runs the tests that every kind runs."""
    recipe = (ROOT / "CONTRIBUTING.md").read_text().split("## Add a sixth kind")[1]
    code = re.search(r"```python\n(.*?)```", recipe, re.DOTALL)
    assert code
    for name in (*MAY_IMPORT, "tests", "pyproject.toml"):
        source = ROOT / name
        shutil.copytree(source, tmp_path / name) if source.is_dir() else shutil.copy(source, tmp_path)
    (tmp_path / "schemas/kinds/sponsor.py").write_text(re.sub(r"^   ", "", code[1], flags=re.MULTILINE))
    listed = tmp_path / "schemas/__init__.py"
    text = listed.read_text().replace("CATEGORY, TAG)", "CATEGORY, TAG, SPONSOR)")
    listed.write_text(
        text.replace(
            "from schemas.kinds.tag", "from schemas.kinds.sponsor import SPONSOR\nfrom schemas.kinds.tag"
        )
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/test_records.py",
        "tests/test_pages_records.py",
        "tests/test_editor_roles.py",
        "-k",
        "sponsor",
        "-p",
        "no:cacheprovider",
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = kept | {"PYTHONPATH": str(tmp_path)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed
    assert int(passed[1]) >= 15
