"""Decides whether compiled code is used: if it was built and can be imported.

``ROWTIDE_PURE_PYTHON=1`` in the environment forces Python. Both give the same results and the same errors. In a
checkout, compiled code that is older than its source, as after ``git pull``, is not used: Python might call it
differently.
"""

import importlib
import os
from pathlib import Path
from types import ModuleType

__all__ = ["compiled_module", "is_stale", "name_of"]


def is_stale(compiled: Path, sources: Path) -> bool:
    """Return whether a source is newer than the compiled module, in a checkout.

    An installation has both from one build.

    Args:
        compiled: the file of the compiled module.
        sources: the folder with the sources in C, somewhere in ``connector``.
    """
    sources = sources.resolve()  # a checkout imports them through the link rowtide/connector
    connector = next(folder for folder in sources.parents if folder.name == "connector")
    if not (connector.parent / "pyproject.toml").exists():
        return False
    built = compiled.stat().st_mtime_ns
    return any(source.stat().st_mtime_ns > built for source in sources.glob("*.[ch]"))


def compiled_module(name: str, source_file: str) -> tuple[ModuleType | None, str]:
    """Return a compiled module (``None`` if Python must be used), and what to do if it is stale.

    Args:
        name: its name.
        source_file: any file in the folder of its sources in C.
    """
    if os.environ.get("ROWTIDE_PURE_PYTHON") == "1":
        return None, ""
    try:
        compiled = importlib.import_module(name)
    except ImportError:  # there was no compiler, or rowtide is imported from a zip archive
        return None, ""
    if is_stale(Path(str(compiled.__file__)), Path(source_file).parent):
        return None, "the compiled code is older than its source: run pip install again, as at the installation"
    return compiled, ""


def name_of(module: ModuleType | None, stale: str) -> str:
    """Return a description of the code in use: compiled code, or Python and the reason.

    Args:
        module: the compiled module, or ``None``.
        stale: what to do about compiled code that is older than its source, empty if there is none.
    """
    return "compiled" if module is not None else f"Python ({stale})" if stale else "Python"
