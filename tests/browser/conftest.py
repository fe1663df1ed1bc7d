"""Fixtures: services in processes of their own, and pages in headless Chromium that note what goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from tests.serving import serving
from tests.test_faults import Running, command

CHROMIUM = "/usr/bin/chromium"
ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / ".venv/axe/node_modules/axe-core/axe.min.js"
SCREENSHOTS = ROOT / "build/screenshots"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

MILLISECONDS = 120_000
"""How long to wait for a page that a busy machine shows slowly."""

Serve = Callable[..., Running]
OpenPage = Callable[..., "Watched"]


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts a service that runs until all tests are done: `serve(AUTH="token")`, `serve(demo=True)`."""
    with ExitStack() as stack:

        def start(*, demo: bool = False, **settings: str) -> Running:
            data_dir = tmp_path_factory.mktemp("service") / "data"
            service = stack.enter_context(serving(data_dir, **settings))
            if demo:
                filled = command(data_dir, "demo", f"--base-url={service.root}")
                assert filled.returncode == 0, filled.stderr
            return service

        yield start


@pytest.fixture(scope="session")
def demo_service(serve: Serve) -> Running:
    """A service with the demo data, shared by tests that do not mind each other's records."""
    return serve(demo=True)


@dataclass
class Watched:
    """A page, and what went wrong on it: console errors, exceptions, and requests to other hosts."""

    page: Page
    host: str
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        self.page.on("request", self._sent)

    def _said(self, message: ConsoleMessage) -> None:
        # What the content security policy refuses is told as an error too.
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    def _sent(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "data" and parts.netloc != self.host:
            self.problems.append(f"request to another host: {request.url}")

    def picture(self, name: str) -> None:
        """Keep a screenshot."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def barriers(self) -> list[str]:
        """What axe-core finds that makes the page hard or impossible to use for some."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run().then((found) => found.violations)")
        return [
            f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def is_within_width(self) -> bool:
        """Whether the page needs no scrolling to the side."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Opens an address in a page of its own: `open_page(url, width=390)`."""
    with ExitStack() as stack:

        def opened(url: str, width: int = 1280, **options: Any) -> Watched:
            shown = {"viewport": {"width": width, "height": 900}, "locale": "en-US"}
            context = chromium.new_context(**shown | options)
            stack.callback(context.close)
            context.set_default_timeout(MILLISECONDS)
            watched = Watched(context.new_page(), urlsplit(url).netloc)
            watched.page.goto(url)
            return watched

        yield opened


class Blank(BaseHTTPRequestHandler):
    """A site with one empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Another site</title><link rel=icon href=data:,>")

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="session")
def other_site() -> Iterator[str]:
    """The origin of another site; Chromium takes localhost and 127.0.0.1 for different sites."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Blank) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
