"""Edge: decides whether rows are decoded by compiled code: it is used where it was built and can be imported.

``ROWTIDE_PURE_PYTHON=1`` in the environment forces Python. Both give the same bytes and the same errors. In a checkout,
compiled code that is older than its source, as after ``git pull``, is not used: Python would call it in a new way.
"""

import os
from pathlib import Path
from types import ModuleType

__all__ = ["NAME", "STALE", "is_stale", "native"]

native: ModuleType | None = None
"""The compiled module; ``None`` if rows are decoded in Python."""


def is_stale(compiled: Path, sources: Path) -> bool:
    """Whether a source is newer than the compiled module, in a checkout. An installation has both from one build.

    Args:
        compiled: the file of the compiled module.
        sources: the folder ``connector/rows/native`` with the sources in C.
    """
    if not (sources.parents[2] / "pyproject.toml").exists():
        return False
    built = compiled.stat().st_mtime_ns
    return any(source.stat().st_mtime_ns > built for source in sources.glob("*.[ch]"))


if os.environ.get("ROWTIDE_PURE_PYTHON") != "1":
    try:
        from rowtide.connector.rows import _native as native
    except ImportError:  # there was no compiler, or rowtide is imported from a zip archive
        native = None

STALE = ""
"""What to do about compiled code that is not used because it is older than its source; empty otherwise."""

if native is not None and is_stale(Path(str(native.__file__)), Path(__file__).parent):
    native = None
    STALE = "the compiled code is older than its source: run pip install again, as at the installation"

NAME = "compiled" if native is not None else f"Python ({STALE})" if STALE else "Python"
"""For the log and ``rowtide --version``."""
