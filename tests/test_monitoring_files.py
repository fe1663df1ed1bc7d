"""What the README, the dashboard and the example for Prometheus say about metrics is what a scrape has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.metrics import PATH
from tests.conftest import Api
from tests.scraping import scrape

ROOT = Path(__file__).parent.parent
DASHBOARD = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
NAME = re.compile(r"\b(?:kalends|process)_[a-z_]+")
SUFFIXES = ("_bucket", "_sum", "_count")
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}


def expressions() -> Iterator[str]:
    """All PromQL of the dashboard, with values for its variables."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            yield expression


def described(family: Any) -> tuple[str, str, str]:
    suffix = "_total" if family.type == "counter" else ""
    return family.name + suffix, family.type, family.documentation


async def test_the_readme_has_every_metric_with_its_type_and_meaning(api: Api) -> None:
    section = (ROOT / "README.md").read_text().split("## Monitoring")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", section, re.MULTILINE)
    assert rows == list(map(described, (await scrape(api)).families))


async def test_the_dashboard_shows_every_metric_and_no_other(api: Api) -> None:
    types = {name: type for name, type, _ in map(described, (await scrape(api)).families)}
    shown: set[str] = set()
    for expression in expressions():
        for name in NAME.findall(expression):
            base = next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name)
            assert types.get(base) == "histogram" or name in types, name
            shown.add(base if types.get(base) == "histogram" else name)
    assert shown == types.keys()


def test_the_expressions_are_well_formed() -> None:
    for expression in expressions():
        assert "$" not in expression
        for opening, closing in ("()", "[]", "{}"):
            assert expression.count(opening) == expression.count(closing), expression
        counted = re.findall(r"\w+_(?:total|bucket|sum|count)\b(\{[^}]*\})(\[5m\])?", expression)
        assert all(selected and window for selected, window in counted), expression


def test_panels_are_placed_beside_each_other() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in DASHBOARD["panels"]):
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_data_source_is_a_variable() -> None:
    (source, _) = DASHBOARD["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    targets = [target for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    assert {target["datasource"]["uid"] for target in targets} == {"${datasource}"}


def test_prometheus_scrapes_the_path_by_default() -> None:
    assert PATH == "/metrics", "prometheus.yml names no other"
    assert "metrics_path" not in (ROOT / "deploy/prometheus.yml").read_text()


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_accepts_the_files(tmp_path: Path) -> None:
    rules = [{"record": f"test:rule{n}", "expr": expression} for n, expression in enumerate(expressions())]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    for command in (("rules", file), ("config", ROOT / "deploy/prometheus.yml")):
        checked = subprocess.run(["promtool", "check", *command], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
