"""Progress of a long command: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

WIDTH = 30
EVERY = {True: 0.1, False: 5.0}
"""Seconds between updates, by whether the stream is a terminal."""
CLEAR = "\r\x1b[K"


class Progress:
    """Prints progress and other lines to one stream without mixing them up."""

    def __init__(self, stream: TextIO, size: int) -> None:
        self._stream, self._size = stream, size
        self._is_terminal = stream.isatty()
        self._begun = self._shown = time.monotonic()

    def say(self, line: str) -> None:
        print((CLEAR if self._is_terminal else "") + line, file=self._stream)

    def show(self, position: int, records: int) -> None:
        now = time.monotonic()
        if now - self._shown < EVERY[self._is_terminal]:
            return
        self._shown = now
        line = self._line(position, records, now - self._begun)
        print(
            *([CLEAR, line] if self._is_terminal else [line, "\n"]),
            sep="",
            end="",
            file=self._stream,
            flush=True,
        )

    def end(self) -> None:
        if self._is_terminal:
            print(CLEAR, end="", file=self._stream, flush=True)

    def _line(self, position: int, records: int, seconds: float) -> str:
        pace = f"{records} records, {records / seconds:.0f} a second"
        if not self._size:
            return pace
        part = min(position / self._size, 1)
        left = round(seconds / part - seconds) if part else 0
        bar = "█" * round(part * WIDTH) if self._is_terminal else ""
        lead = f"{bar:·<{WIDTH}} " if self._is_terminal else ""
        return f"{lead}{part:4.0%}  {pace}, {left // 60}:{left % 60:02} left"
