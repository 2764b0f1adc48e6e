"""The results of ``rowtide verify`` that the page shows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rowtide.connector.worker.web.page.proofs import Proofs
from tests.support.processes.made_page import MARKUP, PROOFS


def test_the_worst_side_of_each_table_counts(tmp_path: Path) -> None:
    (tmp_path / "shop").write_text(json.dumps(PROOFS))
    (tmp_path / "shop.lock").write_text("")
    (tmp_path / "folder").mkdir()
    found = Proofs(tmp_path).by_connector()
    assert list(found) == ["shop"]
    shop = found["shop"]
    assert (shop["equal"], shop["undecided"], shop["different"], shop["proved"]) == (1, 1, 1, None)
    assert [(one["table"], one["outcome"], one["reason"]) for one in shop["tables"]] == [
        ("shop.orders", "different", None),
        (f"shop.{MARKUP}", "undecided", MARKUP),
    ]


def test_the_newest_file_of_a_connector_counts_and_changes_are_seen(tmp_path: Path) -> None:
    proofs = Proofs(tmp_path)
    for name, begun in ("a", 5), ("b", 7), ("c", 6):
        (tmp_path / name).write_text(json.dumps({**PROOFS, "begun": begun}))
    assert proofs.by_connector()["shop"]["begun"] == 7
    (tmp_path / "b").write_text(json.dumps({**PROOFS, "begun": 8.25}))
    os.utime(tmp_path / "b", (9, 9))
    assert proofs.by_connector()["shop"]["begun"] == 8.25
    (tmp_path / "b").unlink()
    assert proofs.by_connector()["shop"]["begun"] == 6


@pytest.mark.parametrize("text", ["", "{", "5", "[]", '{"connector": "shop"}', '{"tables": {"a": 5}}', "[" * 100_000])
def test_other_files_are_skipped(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    assert Proofs(tmp_path).by_connector() == {}
    assert Proofs(tmp_path / "nothing").by_connector() == {}
