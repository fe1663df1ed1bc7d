"""The command line by itself: help, version, suggestions, and variables that are not for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from config import FIELDS, SettingError, Settings, read_settings
from config.version import VERSION
from service.__main__ import main
from service.commands.arguments import parser
from tests.test_faults import REPOSITORY, environment

KUBERNETES = {
    "KALENDS_PORT": "tcp://10.3.241.7:8080",
    "KALENDS_SERVICE_HOST": "10.3.241.7",
    "KALENDS_SERVICE_PORT": "8080",
    "KALENDS_SERVICE_PORT_HTTP": "8080",
    "KALENDS_PORT_8080_TCP": "tcp://10.3.241.7:8080",
    "KALENDS_PORT_8080_TCP_PROTO": "tcp",
    "KALENDS_PORT_8080_TCP_PORT": "8080",
    "KALENDS_PORT_8080_TCP_ADDR": "10.3.241.7",
    "KALENDS_MONGODB_PORT": "tcp://10.3.241.8:27017",
    "KALENDS_MONGODB_SERVICE_HOST": "10.3.241.8",
    "KALENDS_MONGODB_PORT_27017_TCP_ADDR": "10.3.241.8",
}
"""What a container is given beside Services called `kalends` and `kalends-mongodb`."""


def outcome(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int | str | None:
    monkeypatch.setattr("sys.argv", ["kalends", *words])
    monkeypatch.setattr("service.__main__.work", lambda *arguments: pytest.fail("it started to work"))
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], "usage: kalends [-h] [--version] COMMAND"),
        (["token"], "usage: kalends token [-h] ACTION"),
        (["serve", "--help"], "usage: kalends serve [-h]"),
        (["doctor", "--help"], "usage: kalends doctor [-h]"),
        (["--version"], f"kalends {VERSION}\n"),
    ],
)
def test_help_and_version(
    words: list[str], shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(words, monkeypatch) == 0
    said = capsys.readouterr()
    assert (said.out[: len(shown)], said.err) == (shown, "")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["serve", "--prt", "1"], "kalends serve: unknown option --prt; did you mean --port?"),
        (["serve", "--prt=1"], "kalends serve: unknown option --prt=1; did you mean --port?"),
        (["serve", "--xyzzy"], "kalends serve: unknown option --xyzzy"),
        (["serve", "extra"], "kalends serve: unexpected argument extra"),
        (["sevre"], "kalends: argument COMMAND: invalid choice: 'sevre'; did you mean serve? (choose"),
        (
            ["token", "lst"],
            "kalends token: argument ACTION: invalid choice: 'lst'; did you mean list? (choose",
        ),
        (
            ["token", "create", "--name=x", "--role=editr"],
            "kalends token create: argument --role: invalid choice: 'editr'; did you mean editor? (choose",
        ),
        (["token", "create", "--role=admin"], "kalends token create: the following arguments are required"),
        (
            ["token", "create", "--role=admin", "--name= "],
            "kalends token create: argument --name: must not be empty",
        ),
        (["token", "revoke", "x"], "kalends token revoke: argument ID: must be a number"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    words: list[str], shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(words, monkeypatch) == 2
    said = capsys.readouterr()
    first, hint = said.err.splitlines()
    assert first.startswith(shown), first
    assert re.fullmatch(r"Try 'kalends[a-z ]* --help'\.", hint)
    assert said.out == ""


def test_every_setting_is_an_option_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["serve", "--help"])
    shown = " ".join(capsys.readouterr().out.split()).replace("comma- separated", "comma-separated")
    for name, one in FIELDS.items():
        assert f"--{name.replace('_', '-')} VALUE" in shown
        assert one.metadata["help"] in shown
    assert "(default: 8080)" in shown
    assert "(default: $XDG_DATA_HOME/kalends or ~/.local/share/kalends)" in shown


def test_variables_of_kubernetes_are_ignored() -> None:
    assert read_settings(KUBERNETES, {}) == Settings()
    assert read_settings(KUBERNETES | {"KALENDS_DATABASE": "other"}, {}).database == "other"
    with pytest.raises(SettingError, match="KALENDS_PORT must be a whole number"):
        read_settings({"KALENDS_PORT": "http://10.3.241.7:8080"}, {})
    with pytest.raises(SettingError, match="KALENDS_PORTS is not a setting; did you mean KALENDS_PORT"):
        read_settings({"KALENDS_PORTS": "tcp://10.3.241.7:8080"}, {})


STOPPED_EARLY = """
import os, signal, sys
pid, os.getpid = os.getpid(), lambda: 1
class Import:
    def find_spec(self, name, *_):
        if name == "uvloop":
            os.kill(pid, signal.SIGTERM)
sys.meta_path.insert(0, Import())
import service.__main__
"""
"""A process that takes itself for the first one of a container, and is told to stop while it imports."""


def test_the_first_process_of_a_container_can_be_stopped_while_it_imports() -> None:
    """Without a handler the kernel drops the signal there; elsewhere its default action ends with -15."""
    run = subprocess.run([sys.executable, "-c", STOPPED_EARLY], cwd=REPOSITORY, check=False)
    assert run.returncode == 143


@pytest.mark.slow
def test_commands_find_the_same_data_from_any_directory(tmp_path: Path) -> None:
    """Without a setting: a token that one command creates is listed by another elsewhere."""
    kept = environment(tmp_path) | {"XDG_DATA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(REPOSITORY)}
    del kept["KALENDS_DATA_DIR"]
    said = []
    for words in (["create", "--role=viewer", "--name=Me"], ["list"]):
        (cwd := tmp_path / words[0]).mkdir()
        command = [sys.executable, "-m", "service", "token", *words]
        run = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=True)
        assert f"in database kalends of the embedded MongoDB in {tmp_path / 'home/kalends'}" in run.stderr
        assert list(cwd.iterdir()) == []
        said.append(run.stdout)
    assert re.fullmatch(r"kal_\S+\n", said[0])
    assert said[1].splitlines()[1].split()[1:3] == ["Me", "viewer"]
