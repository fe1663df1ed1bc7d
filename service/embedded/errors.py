"""The error of the embedded mongod."""

from __future__ import annotations


class EmbeddedError(Exception):
    """The embedded mongod cannot run; the message is one line for the operator."""
