"""The data directory of the embedded MongoDB; the default does not depend on the working directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from service.embedded.directory import Directory
from service.embedded.errors import EmbeddedError

LEGACY_DEFAULT = Path(".kalends")
"""The default of earlier versions, relative to the working directory."""


@dataclass(frozen=True)
class ChosenDirectory:
    """A data directory, and a message for the operator if it is that of earlier versions."""

    path: Path
    notice: str = ""


def choose_directory(chosen: Path | None) -> ChosenDirectory:
    """The chosen directory, or else the default one. Data in the default directory of earlier versions takes
    precedence over the default, so that it does not seem lost after an upgrade."""
    if chosen:
        return ChosenDirectory(chosen.expanduser().resolve())
    if not (legacy := _legacy()):
        return ChosenDirectory(_default())
    if not _is_own(LEGACY_DEFAULT):
        raise EmbeddedError(
            f"{legacy} belongs to another user: run the command as that user, or set KALENDS_DATA_DIR"
        )
    return ChosenDirectory(
        legacy,
        f"using the data in {legacy}, the default directory of earlier versions; to use {_default()}, "
        "set KALENDS_DATA_DIR to it, or stop the service and move the data there",
    )


def _legacy() -> Path | None:
    try:
        directory = Directory.at(LEGACY_DEFAULT)
    except OSError:  # the working directory has been removed
        return None
    return directory.root if directory.has_data() else None


def _is_own(place: Path) -> bool:
    """Whether this user has made a directory, or a link to it: in /tmp, anybody could have."""
    return place.lstat().st_uid == os.geteuid()


def _default() -> Path:
    """Follows the XDG Base Directory Specification, which says to ignore a relative XDG_DATA_HOME."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (base if base.is_absolute() else _home() / ".local" / "share") / "kalends"


def _home() -> Path:
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    if not home.is_absolute() or not home.is_dir() or home == Path("/"):
        raise EmbeddedError("no home directory for the data: set KALENDS_DATA_DIR")
    return home
