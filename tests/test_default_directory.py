"""Where the data is: one default, whatever the working directory, and the former default is still found."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.database import Location
from service.embedded import EmbeddedError, choose_directory


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, and a home beside it."""
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def fill(directory: Path) -> None:
    (directory / "db").mkdir(parents=True)
    (directory / "lock").touch()


def test_the_default_is_in_the_home_directory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    default = here / "home/.local/share/kalends"
    assert (choose_directory(None).path, choose_directory(None).notice) == (default, "")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert choose_directory(None).path == default
    monkeypatch.setenv("XDG_DATA_HOME", str(here / "data"))
    assert choose_directory(None).path == here / "data/kalends"


def test_data_in_the_former_place_goes_on_being_used(here: Path) -> None:
    default = here / "home/.local/share/kalends"
    former = here / "work/.kalends"
    former.mkdir()
    assert choose_directory(None).path == default, "there is nothing in it"
    fill(former)
    assert choose_directory(None).path == former
    fill(default)
    place = choose_directory(None)
    assert place.path == former, "whatever is elsewhere"
    assert place.notice.startswith(f"using the data in {former}, ")
    assert f"to use {default}, set KALENDS_DATA_DIR" in place.notice
    assert choose_directory(default).path == default
    assert choose_directory(default).notice == ""
    assert choose_directory(Path("other")).path == here / "work/other"


def test_data_of_another_user_in_the_former_place_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former, mine = here / "work/.kalends", here / "mine"
    fill(mine)
    former.symlink_to(mine)
    assert choose_directory(None).path == mine
    with monkeypatch.context() as patched:
        patched.setattr("os.geteuid", lambda: former.lstat().st_uid + 1)
        with pytest.raises(EmbeddedError, match="belongs to another user"):
            choose_directory(None)


@pytest.mark.parametrize("home", ["", "/", "relative", "/no/such/home"])
def test_without_a_home_directory_a_place_must_be_named(
    here: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)
    with pytest.raises(EmbeddedError, match="no home directory for the data: set KALENDS_DATA_DIR"):
        choose_directory(None)
    assert choose_directory(here).path == here


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("mongodb://mongo1:27017,mongo2:27017/?replicaSet=rs0", "mongo1:27017,mongo2:27017"),
        ("mongodb://me:hunter2@mongo1/admin?replicaSet=rs0", "mongo1"),
        ("mongodb+srv://me:hunter2@cluster.example.org", "cluster.example.org"),
        ("mongodb://me:hunter2@%2Frun%2Fmongod.sock/?directConnection=true", "/run/mongod.sock"),
    ],
)
def test_a_database_is_named_without_user_and_password(uri: str, shown: str) -> None:
    assert str(Location(uri, "kalends")) == f"database kalends of MongoDB at {shown}"
    embedded = Location(uri, "other", Path("/data"))
    assert str(embedded) == "database other of the embedded MongoDB in /data"
