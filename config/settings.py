"""Settings: read from KALENDS_* variables and flags, checked before anything starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PREFIX = "KALENDS_"


class SettingError(Exception):
    """A setting that cannot be used: one line that names it and says what would be right."""


def whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


def decimal(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or not low <= float(text) <= high:
            raise ValueError(f"a number from {low:g} to {high:g}")
        return float(text)

    return read


def one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError("one of " + ", ".join(words))
        return text.lower()

    return read


def word(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("a text that is not empty")
    return text.strip()


def database_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,38}", text):
        raise ValueError("1 to 38 letters, digits, '-' or '_'")
    return text


def mount_path(text: str) -> str:
    if text.strip("/") and not re.fullmatch(r"/?[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*/?", text):
        raise ValueError("a path such as /wp-json")
    return "/" + text.strip("/") if text.strip("/") else ""


def mount_paths(text: str) -> tuple[str, ...]:
    return tuple(path for path in map(mount_path, text.split(",")) if path)


def web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("an address such as https://events.example.org")
    return text.rstrip("/")


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(","))
    except ValueError:
        raise ValueError("networks such as 10.0.0.0/8 or 192.0.2.1") from None


def origins(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    found = tuple(part.strip().rstrip("/").lower() for part in text.split(","))
    if not all(re.fullmatch(r"\*|https?://[a-z0-9.-]+(:[0-9]{1,5})?", one) for one in found):
        raise ValueError("*, none, or origins such as https://www.example.org")
    return found


def mongodb_uri(text: str) -> str:
    if not text.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("an address such as mongodb://host:27017/?replicaSet=rs0")
    return text


def directory(text: str) -> Path:
    return Path(word(text)).expanduser()


def setting(default: Any, read: Callable[[str], Any], help: str) -> Any:
    return field(default=default, metadata={"read": read, "help": help})


@dataclass(frozen=True)
class Settings:
    """Everything an operator can choose; the defaults serve one developer on one machine."""

    host: str = setting("127.0.0.1", word, "address to listen on")
    port: int = setting(8080, whole(0, 65535), "port to listen on (0: any free one)")
    base_url: str = setting("", web_address, "public address that links start with")
    api_root: str = setting("", mount_path, "path below the base URL that the API sits under")
    aliases: tuple[str, ...] = setting((), mount_paths, "more paths that serve the API, separated by commas")
    mongodb_uri: str = setting("", mongodb_uri, "MongoDB to use (none: an embedded one)")
    database: str = setting("kalends", database_name, "name of the database")
    data_dir: Path = setting(Path(".kalends"), directory, "directory of the embedded MongoDB")
    timezone: str = setting("UTC", word, "time zone of the site")
    auth: str = setting(
        "", one_of("open", "token"), "open (everybody may write; default on loopback only) or token"
    )
    workers: int = setting(1, whole(1, 64), "number of processes that serve")
    max_per_page: int = setting(100, whole(1, 1000), "largest page a list may be asked for")
    max_body: int = setting(1_048_576, whole(1024, 15_000_000), "largest request body in bytes")
    request_seconds: int = setting(30, whole(1, 600), "time after which a request is given up")
    max_concurrent: int = setting(256, whole(1, 100_000), "requests that one process serves at a time")
    rate_limit: int = setting(0, whole(0, 1_000_000), "requests a minute that one client may make (0: any)")
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = setting(
        (), networks, "networks of proxies whose X-Forwarded-For is believed, separated by commas"
    )
    cors_origins: tuple[str, ...] = setting(
        ("*",),
        origins,
        "sites whose pages may read and, with a token, write (*: pages of any site may read; none)",
    )
    geoloc_radius: float = setting(40.234, decimal(0.001, 20038), "default radius of a place filter in km")
    currency_symbol: str = setting("$", word, "currency of a cost that names none")
    currency_code: str = setting("USD", word, "its ISO code")
    currency_position: str = setting("prefix", one_of("prefix", "suffix"), "where its symbol stands")
    log_level: str = setting("info", one_of("debug", "info", "warning", "error"), "how much is logged")
    log_format: str = setting("text", one_of("text", "json"), "how it is logged: text or json")
    access_log: str = setting("on", one_of("on", "off"), "whether each request is logged: on or off")

    @property
    def access(self) -> str:
        return self.auth or "open"

    @property
    def address(self) -> str:
        """The base URL; by default the address listened on."""
        host = "localhost" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        host = f"[{host}]" if ":" in host else host
        return self.base_url or f"http://{host}:{self.port}"

    @property
    def namespace(self) -> str:
        return f"{self.api_root}/calendar/events/v1"

    def variables(self) -> dict[str, str]:
        """The settings as variables, to hand them to another process."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        texts = {
            name: ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            for name, value in (values | {"cors_origins": self.cors_origins or ("none",)}).items()
        }
        return {PREFIX + name.upper(): text for name, text in texts.items() if text}

    def is_local(self) -> bool:
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False


FIELDS = {one.name: one for one in fields(Settings)}


def read_settings(environment: Mapping[str, str], flags: Mapping[str, str | None]) -> Settings:
    """Flags win over variables, variables over defaults; an unknown KALENDS_ name is an error."""
    known = {PREFIX + name.upper(): one for name, one in FIELDS.items()}
    for name in environment:
        if name.startswith(PREFIX) and name not in known:
            raise SettingError(f"{name} is not a setting; known are {', '.join(sorted(known))}")
    settings = Settings(**{one.name: _read(one, name, environment, flags) for name, one in known.items()})
    if not settings.is_local() and not settings.auth:
        raise SettingError(
            f"{PREFIX}HOST {settings.host!r} is reachable by others: set {PREFIX}AUTH=token, "
            f"or {PREFIX}AUTH=open to let everybody write"
        )
    return settings


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
