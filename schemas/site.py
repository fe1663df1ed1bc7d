"""The site that is served: what its addresses, clock and currency are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from time import time
from urllib.parse import urlsplit

from schemas.costs import Currency
from schemas.dates import EPOCH
from schemas.zones import Zone, parse_zone

NAMESPACE = "calendar/events/v1"


@dataclass(frozen=True)
class Site:
    """Facts about the site that representations and date rules depend on."""

    base_url: str = "http://127.0.0.1:8080"
    namespace: str = f"/{NAMESPACE}"
    zone: Zone = field(default_factory=lambda: parse_zone("UTC"))
    currency: Currency = field(default_factory=Currency)
    max_per_page: int = 100
    radius_km: float = 40.234

    @cached_property
    def api(self) -> str:
        return self.base_url + self.namespace

    @cached_property
    def facts(self) -> str:
        """What of a site shows in its records."""
        return repr((self.api, self.zone.name, self.currency))

    @cached_property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc

    def now(self) -> datetime:
        """The present second, in UTC, as stored."""
        return _second(int(time()))


@lru_cache(1)
def _second(since_epoch: int) -> datetime:
    return EPOCH + timedelta(seconds=since_epoch)
