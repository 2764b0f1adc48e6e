"""Files that are replaced in one step."""

from pathlib import Path

import pytest

from rowtide.synced_files import replace_file, sync_folder, write_synced


def test_a_file_is_created_and_replaced(tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        replace_file(tmp_path / "a.json", content)
        sync_folder(tmp_path)
        assert (tmp_path / "a.json").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_file_that_cannot_be_written_keeps_its_content(tmp_path: Path) -> None:
    write_synced(tmp_path / "a.json", b"old")
    (tmp_path / "a.json.new").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "a.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_bytes() == b"old"
