"""Build the site from the settings."""

from __future__ import annotations

from datetime import timedelta

from config import SettingError, Settings
from schemas.site import Site
from schemas.values.costs import Currency
from schemas.values.zones import parse_zone


def site_of(settings: Settings) -> Site:
    try:
        zone = parse_zone(settings.timezone)
    except ValueError:
        raise SettingError(
            f"KALENDS_TIMEZONE must be a zone such as Europe/Paris or UTC+2, not {settings.timezone!r}"
        ) from None
    return Site(
        base_url=settings.address,
        namespace=settings.namespace,
        title=settings.title,
        zone=zone,
        currency=Currency(settings.currency_symbol, settings.currency_code, settings.currency_position),
        max_per_page=settings.max_per_page,
        radius_km=settings.geoloc_radius,
        changes_kept=timedelta(days=settings.changes_days),
    )
