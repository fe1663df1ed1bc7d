"""The options of `kalends import`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

ADDRESS = re.compile(r"(https?|webcals?)://", re.IGNORECASE)


@dataclass(frozen=True)
class ImportOptions:
    """The options of `kalends import`."""

    source: str
    kind: str = "events"
    author: int = 0
    ignore_unknown: bool = False
    dry_run: bool = False
    user: str = ""
    password: str = ""
    mapping: Mapping[str, str] = field(default_factory=dict)
    date_format: str = ""
    since: date = date.min
    until: date = date.max

    @property
    def is_address(self) -> bool:
        return ADDRESS.match(self.source) is not None

    @property
    def activity(self) -> str:
        """The beginning of the line that names the database."""
        return "Dry run, nothing is written to" if self.dry_run else "Importing into"
