"""Fixtures: victims and their driver, on the database of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.mongo import abandoned_transactions
from service.store import Store
from tests.crashing.driver import Driver
from tests.crashing.victims import Victims


@pytest.fixture
def driver(mongodb_uri: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setattr(abandoned_transactions, "ABANDONED_AFTER_SECONDS", 0.0)
    return Driver(Victims(mongodb_uri, store, tmp_path))
