"""The settings of the site: URLs, time zone, currency and limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from time import time
from urllib.parse import urlsplit

from schemas.values.costs import Currency
from schemas.values.dates import EPOCH
from schemas.values.zones import Zone, parse_zone

NAMESPACE = "calendar/events/v1"


@dataclass(frozen=True)
class Site:
    """Settings that representations and date handling depend on."""

    base_url: str = "http://127.0.0.1:8080"
    namespace: str = f"/{NAMESPACE}"
    title: str = ""
    zone: Zone = field(default_factory=lambda: parse_zone("UTC"))
    currency: Currency = field(default_factory=Currency)
    max_per_page: int = 100
    radius_km: float = 40.234
    changes_kept: timedelta = timedelta(days=30)

    @cached_property
    def api(self) -> str:
        return self.base_url + self.namespace

    @cached_property
    def representation_key(self) -> str:
        """The settings that affect representations; used in cache keys."""
        return repr((self.api, self.title, self.zone.name, self.currency))

    @cached_property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc

    def now(self) -> datetime:
        """The current time in UTC, in whole seconds, as it is stored."""
        return _second(int(time()))


@lru_cache(1)
def _second(since_epoch: int) -> datetime:
    return EPOCH + timedelta(seconds=since_epoch)
