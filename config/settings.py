"""Settings, read from KALENDS_* variables and command-line options and validated at startup."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import Any

from config.kubernetes import without_injected
from config.readers import (
    database_name,
    decimal,
    directory,
    mongodb_uri,
    mount_path,
    mount_paths,
    networks,
    one_of,
    origins,
    web_address,
    whole,
    word,
)

PREFIX = "KALENDS_"


class SettingError(Exception):
    """An invalid setting or argument; the message is one line that names it and says what is allowed."""


def setting(default: Any, read: Callable[[str], Any], help: str, unset: str = "") -> Any:
    """A setting; `unset` describes the default where it is not a fixed value."""
    return field(default=default, metadata={"read": read, "help": help, "unset": unset})


@dataclass(frozen=True)
class Settings:
    """All settings; the defaults suit development on one machine."""

    host: str = setting("127.0.0.1", word, "IP address or host name to listen on")
    port: int = setting(8080, whole(0, 65535), "port to listen on (0: any free port)")
    base_url: str = setting(
        "", web_address, "public URL of the service; all links start with it", "http://HOST:PORT"
    )
    api_root: str = setting("", mount_path, "path between the base URL and /calendar/events/v1")
    aliases: tuple[str, ...] = setting(
        (), mount_paths, "additional paths that serve the API, comma-separated"
    )
    mongodb_uri: str = setting(
        "", mongodb_uri, "connection string of your own MongoDB replica set", "embedded MongoDB"
    )
    database: str = setting("kalends", database_name, "name of the MongoDB database")
    data_dir: Path | None = setting(
        None,
        directory,
        "directory for the data of the embedded MongoDB",
        "$XDG_DATA_HOME/kalends or ~/.local/share/kalends",
    )
    title: str = setting("", word, "name of the calendar, on its pages and in feeds", "Calendar")
    timezone: str = setting("UTC", word, "default time zone, such as Europe/Paris")
    auth: str = setting(
        "",
        one_of("open", "token"),
        "who may write: open (every caller) or token (only callers with a token)",
        "open on a loopback address, otherwise required",
    )
    workers: int = setting(1, whole(1, 64), "number of worker processes")
    max_per_page: int = setting(100, whole(1, 1000), "maximum number of records on one page of a list")
    max_body: int = setting(1_048_576, whole(1024, 15_000_000), "maximum size of a request body in bytes")
    request_seconds: int = setting(30, whole(1, 600), "seconds after which a request is cancelled")
    max_concurrent: int = setting(
        256, whole(1, 100_000), "maximum number of concurrent requests in one worker process"
    )
    rate_limit: int = setting(
        0, whole(0, 1_000_000), "maximum requests per minute from one client (0: no limit)"
    )
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = setting(
        (), networks, "addresses or networks of proxies whose X-Forwarded-For is trusted, comma-separated"
    )
    cors_origins: tuple[str, ...] = setting(
        ("*",),
        origins,
        "web origins whose pages may read the API and, if named, write with a token; comma-separated "
        "(*: all may read; none: no origin)",
    )
    webhook_networks: tuple[IPv4Network | IPv6Network, ...] = setting(
        (), networks, "private addresses or networks that webhooks may be sent to, comma-separated"
    )
    changes_days: int = setting(30, whole(1, 366), "days for which changes are kept for `/changes`")
    geoloc_radius: float = setting(
        40.234, decimal(0.001, 20038), "default radius in km of a search around a place"
    )
    currency_symbol: str = setting("$", word, "default currency symbol, for costs given without one")
    currency_code: str = setting("USD", word, "ISO code of the default currency")
    currency_position: str = setting(
        "prefix", one_of("prefix", "suffix"), "position of the default currency symbol: prefix or suffix"
    )
    log_level: str = setting(
        "info", one_of("debug", "info", "warning", "error"), "log level: debug, info, warning or error"
    )
    log_format: str = setting("text", one_of("text", "json"), "format of log lines: text or json")
    access_log: str = setting("on", one_of("on", "off"), "log a line for each request: on or off")
    slow_ms: int = setting(
        500, whole(0, 600_000), "milliseconds from which on a call to MongoDB is logged as slow (0: never)"
    )

    @property
    def auth_mode(self) -> str:
        return self.auth or "open"

    @property
    def address(self) -> str:
        """The base URL; by default the URL of the listening address."""
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound
        host = f"[{host}]" if ":" in host else host
        return self.base_url or f"http://{host}:{self.port}"

    @property
    def namespace(self) -> str:
        return f"{self.api_root}/calendar/events/v1"

    def variables(self) -> dict[str, str]:
        """The settings as environment variables, for a child process."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values |= {"cors_origins": self.cors_origins or ("none",), "data_dir": self.data_dir or ""}
        texts = {
            name: ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            for name, value in values.items()
        }
        return {PREFIX + name.upper(): text for name, text in texts.items() if text}

    def is_local(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


FIELDS = {one.name: one for one in fields(Settings)}


def read_settings(environment: Mapping[str, str], flags: Mapping[str, str | None]) -> Settings:
    """Options override variables, variables override defaults; an unknown KALENDS_ name is an error."""
    environment = without_injected(environment)
    known = {PREFIX + name.upper(): one for name, one in FIELDS.items()}
    for name in environment:
        if name.startswith(PREFIX) and name not in known:
            raise SettingError(f"{name} is not a setting; {_nearest(name, known)}")
    settings = Settings(**{one.name: _read(one, name, environment, flags) for name, one in known.items()})
    if not settings.is_local() and not settings.auth:
        raise SettingError(
            f"{PREFIX}HOST {settings.host!r} is not a loopback address: set {PREFIX}AUTH=token, "
            f"or {PREFIX}AUTH=open to let every caller write"
        )
    return settings


def _nearest(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name, known, 1, 0.75)
    return f"did you mean {near[0]}?" if near else f"the settings are {', '.join(sorted(known))}"


def _read(one: Field[Any], name: str, environment: Mapping[str, str], flags: Mapping[str, str | None]) -> Any:
    given = flags.get(one.name)
    text = given if given is not None else environment.get(name, "")
    if not text and given is None:
        return one.default
    try:
        return one.metadata["read"](text)
    except ValueError as error:
        shown = re.sub(r".*@", "…@", text, flags=re.DOTALL)
        raise SettingError(f"{name} must be {error}, not {shown!r}") from None
