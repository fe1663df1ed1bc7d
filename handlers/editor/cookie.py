"""The cookie of a session: it holds the token, and browsers send it to the pages of this service only."""

from __future__ import annotations

from urllib.parse import urlsplit

COOKIE = "kalends_session"
SESSION_SECONDS = 7 * 86400
"""How long a browser keeps the cookie."""


def session_cookie(token: str, base_url: str, seconds: int = SESSION_SECONDS) -> str:
    """The Set-Cookie header of a session. Scripts cannot read the cookie, and requests that begin on pages of
    other sites do not have it."""
    address = urlsplit(base_url)
    secure = "; Secure" if address.scheme == "https" else ""
    path = address.path.rstrip("/") or "/"
    return f"{COOKIE}={token}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def cleared_cookie(base_url: str) -> str:
    """The Set-Cookie header that ends a session."""
    return session_cookie("", base_url, 0)
