"""Environment variables that Kubernetes injects for a Service named `kalends` or `kalends-…`."""

from __future__ import annotations

import re
from collections.abc import Mapping

ALWAYS = re.compile(
    r"KALENDS_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
BY_VALUE = re.compile(r"KALENDS_(\w+_)?PORT")
ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def is_injected(name: str, value: str) -> bool:
    """KALENDS_PORT is also a setting; the injected one is an address such as tcp://10.0.0.1:8080."""
    return bool(ALWAYS.fullmatch(name) or (BY_VALUE.fullmatch(name) and ADDRESS.match(value)))


def without_injected(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not is_injected(name, value)}
