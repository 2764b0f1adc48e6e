"""Decides whether records are encoded by compiled code: if it was built, and is not older than its source.

``ROWTIDE_PURE_PYTHON=1`` in the environment forces Python. Both give the same bytes and the same errors.
"""

import importlib
import os
from pathlib import Path
from types import ModuleType

__all__ = ["NAME", "native"]

_MODULE = "rowtide.connector.kafka_producer.batches._native"


def _compiled() -> tuple[ModuleType | None, str]:
    """Return the compiled module, or ``None`` and the reason if users should know it."""
    if os.environ.get("ROWTIDE_PURE_PYTHON") == "1":
        return None, ""
    try:
        compiled = importlib.import_module(_MODULE)
    except ImportError:  # there was no compiler, or the package is imported from a zip archive
        return None, ""
    built, sources = Path(str(compiled.__file__)).stat().st_mtime_ns, Path(__file__).resolve().parent
    in_checkout = (sources.parents[3] / "pyproject.toml").exists()  # an installation has both from one build
    if in_checkout and any(source.stat().st_mtime_ns > built for source in sources.glob("*.[ch]")):
        return None, "the compiled code is older than its source: run pip install again"
    return compiled, ""


native, _STALE = _compiled()
"""The compiled module; ``None`` if Python is used."""

NAME = "compiled" if native is not None else f"Python ({_STALE})" if _STALE else "Python"
"""For the log and ``rowtide --version``."""
