"""What is said at the start and when MongoDB fails: short, true, and once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pymongo.errors import OperationFailure, ServerSelectionTimeoutError

from config import Settings
from service.database import Location
from service.failures import Failures, brief
from service.mongodb_versions import outdated_warning, server_version
from service.process.announcing import _wait_for_mongodb, is_exposed

UNREACHABLE = (
    "mongo:27017: [Errno 111] Connection refused (configured timeouts: socketTimeoutMS: 3000.0ms, "
    "connectTimeoutMS: 3000.0ms), Timeout: 2.9s, Topology Description: <TopologyDescription id: 1>"
)


@pytest.mark.parametrize(
    ("version", "is_warned_of"),
    [
        ((4, 4, 30), True),
        ((6, 0, 5), True),
        ((6, 0, 26), True),
        ((6, 0, 27), False),
        ((7, 0, 34), True),
        ((7, 0, 35), False),
        ((7, 3, 4), True),
        ((8, 0, 23), True),
        ((8, 0, 24), False),
        ((8, 2, 0), False),
        ((9, 0, 0), False),
    ],
)
def test_an_old_mongodb_is_warned_of(version: Sequence[int], is_warned_of: bool) -> None:
    said = outdated_warning(version)
    assert (said is not None) is is_warned_of
    if said:
        assert said.startswith(f"MongoDB {'.'.join(map(str, version))} is older than recommended")
        assert said.endswith("use 6.0.27, 7.0.35, 8.0.24 or newer")


async def test_the_warning_is_logged_for_a_mongodb_that_is_not_embedded(
    mongodb_uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    await _wait_for_mongodb(Location(mongodb_uri, "kalends"))
    expected = outdated_warning(await server_version(mongodb_uri))
    assert [record.getMessage() for record in caplog.records] == [expected] if expected else []


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ServerSelectionTimeoutError(UNREACHABLE), "mongo:27017: [Errno 111] Connection refused"),
        (OperationFailure("not authorized", 13, {"ok": 0, "errmsg": "x" * 500}), "not authorized"),
        (OperationFailure("x" * 500, 13, {}), "x" * 200 + "…"),
    ],
)
def test_an_error_of_the_driver_is_shortened(error: Exception, shown: str) -> None:
    assert brief(error) == shown


def test_a_failure_is_logged_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    failures = Failures(logging.getLogger("kalends.test"), "maintenance")
    caplog.set_level("INFO")
    failures.succeeded()
    for error in ("refused", "refused", "timed out", "refused"):
        failures.failed(ServerSelectionTimeoutError(error))
    failures.succeeded()
    failures.succeeded()
    failures.failed(ServerSelectionTimeoutError("refused"))
    assert [record.getMessage() for record in caplog.records] == [
        "maintenance failed; retrying: refused",
        "maintenance failed; retrying: timed out",
        "maintenance succeeded again",
        "maintenance failed; retrying: refused",
    ]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, False),
        ({"base_url": "https://events.example.org"}, True),
        ({"base_url": "https://events.example.org", "auth": "open"}, False),
        ({"base_url": "https://events.example.org", "auth": "token"}, False),
        ({"base_url": "http://localhost:8080"}, False),
        ({"base_url": "http://[::1]:8080"}, False),
    ],
)
def test_open_mode_behind_a_proxy_is_warned_of(chosen: dict[str, str], expected: bool) -> None:
    assert is_exposed(replace(Settings(), **chosen)) is expected  # type: ignore[arg-type]
