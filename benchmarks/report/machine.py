"""Hardware and versions that a result was measured on; nothing that identifies the machine."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.systems import FOLDER

THEIRS = ("eve", "flask", "gunicorn", "fastapi", "beanie", "pydantic", "uvicorn", "uvloop", "pymongo")


def facts(ours: dict[str, str], mongodb: str) -> dict[str, Any]:
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "processor": model[1].strip() if model else platform.machine(),
        "memory_gb": round(memory / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "mongodb": mongodb,
        "kalends": ours,
        "peers": {name: version(name) for name in THEIRS} | in_node(),
    }


def in_node() -> dict[str, str]:
    """The versions that the peer in Node.js is locked to."""
    package = json.loads((FOLDER / "peers" / "fastify" / "package.json").read_text())
    return {f"node: {name}": number for name, number in package["dependencies"].items()}
