"""The last proofs of ``rowtide verify --every --proofs``, which a directory has for some connectors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_OUTCOMES = "equal", "undecided", "different"
_MOST_TABLES = 20
"""Tables that are named, at most; the others are counted."""
_LARGEST = 32 << 20


class Proofs:
    """The proofs in the files of a directory, which are read again when they change.

    Args:
        folder: the directory; ``None`` for no proofs.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[tuple[int, int], tuple[str, dict[str, Any]] | None]] = {}

    def by_connector(self) -> dict[str, dict[str, Any]]:
        """Return the newest proof of each connector, as a JSON object. Files without proofs are skipped."""
        found: dict[str, dict[str, Any]] = {}
        for connector, proof in filter(None, map(self._read, self._files())):
            if connector not in found or found[connector]["begun"] < proof["begun"]:
                found[connector] = proof
        return found

    def _files(self) -> list[Path]:
        try:
            return [] if self._folder is None else sorted(self._folder.iterdir())
        except OSError:
            return []

    def _read(self, file: Path) -> tuple[str, dict[str, Any]] | None:
        try:
            state = file.stat()
            version = state.st_mtime_ns, state.st_size
            if self._known.get(file, (None,))[0] != version:
                text = file.read_text(encoding="utf-8") if file.is_file() and state.st_size <= _LARGEST else "null"
                self._known[file] = version, _proof(json.loads(text))
        except (OSError, ValueError, RecursionError):
            self._known.pop(file, None)
            return None
        return self._known[file][1]


def _proof(content: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the connector and its proof from the content of a file; ``None`` if it has another form."""
    try:
        worst = {name: _worst(sides) for name, sides in content["tables"].items()}
        counts = {outcome: sum(one["outcome"] == outcome for one in worst.values()) for outcome in _OUTCOMES}
        proved = [one["proved"] for one in worst.values()]
        return str(content["connector"]), {
            "begun": float(content["begun"] or 0),
            "ended": content["ended"],
            "error": content["error"],
            **counts,
            "proved": None if None in proved else min(proved, default=None),
            "tables": [
                {"table": name, **{key: one[key] for key in ("outcome", "reason", "differences", "proved")}}
                for name, one in worst.items()
                if one["outcome"] != "equal"
            ][:_MOST_TABLES],
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _worst(sides: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the worst of the comparisons of a table: with its topic and, if it has one, with its Spark table."""
    return max(sides.values(), key=lambda one: (_OUTCOMES.index(one["outcome"]), -(one["proved"] or 0)))
