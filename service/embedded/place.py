"""The data directory of the embedded MongoDB; the default does not depend on the working directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from service.embedded.directory import Directory
from service.embedded.errors import EmbeddedError

FORMER = Path(".kalends")
"""The default of earlier versions, relative to the working directory."""


@dataclass(frozen=True)
class Place:
    """A data directory, and a message for the operator if it is that of earlier versions."""

    path: Path
    remark: str = ""


def data_place(chosen: Path | None) -> Place:
    """The chosen directory, or else the default one. Data in the default directory of earlier versions takes
    precedence over the default, so that it does not seem lost after an upgrade."""
    if chosen:
        return Place(chosen.expanduser().resolve())
    if not (former := _former()):
        return Place(_default())
    return Place(
        former,
        f"using the data in {former}, the default directory of earlier versions; to use {_default()}, "
        "set KALENDS_DATA_DIR to it, or stop the service and move the data there",
    )


def _former() -> Path | None:
    try:
        directory = Directory.at(FORMER)
    except OSError:  # the working directory has been removed
        return None
    return directory.root if directory.has_data() else None


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
