"""Decides whether rows are decoded by compiled code: it is used where it was built and can be imported.

``ROWTIDE_PURE_PYTHON=1`` in the environment forces Python. Both give the same bytes and the same errors.
"""

import os
from types import ModuleType

__all__ = ["NAME", "native"]

native: ModuleType | None = None
"""The compiled module; ``None`` if rows are decoded in Python."""

if os.environ.get("ROWTIDE_PURE_PYTHON") != "1":
    try:
        from rowtide.connector.rows import _native as native
    except ImportError:  # there was no compiler, or rowtide is imported from a zip archive
        native = None

NAME = "Python" if native is None else "compiled"
"""For the log and ``rowtide --version``."""
