"""Fixtures: a service to generate clients for, and to use them with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import serving
from tests.test_faults import Running


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """An empty service of its own."""
    with serving(tmp_path / "data") as running:
        yield running
