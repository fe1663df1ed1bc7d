"""Fixtures: services in processes of their own, and pages in headless Chromium that note what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from tests.serving import serving
from tests.test_faults import Running, command

CHROMIUM = "/usr/bin/chromium"
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
                filled = command(data_dir, "demo")
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

        def opened(url: str, width: int = 1280) -> Watched:
            context = chromium.new_context(viewport={"width": width, "height": 900}, locale="en-US")
            stack.callback(context.close)
            context.set_default_timeout(MILLISECONDS)
            watched = Watched(context.new_page(), urlsplit(url).netloc)
            watched.page.goto(url)
            return watched

        yield opened
