"""The offset file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.databus.client.offset_file import ClientProgress, load, save
from rowtide.databus.errors import OffsetFileError
from rowtide.databus.events import Position


def test_a_file_of_the_original_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "Repl.info"
    text = 'mastername = "binlog.000145"\nmasterpos = 2165057\noffset = 17\n'
    path.write_text(text)
    found = load(path)
    assert found == ClientProgress(Position("binlog.000145", 2165057), 17)
    save(path, found)
    assert path.read_text() == text


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(0, 2**40), st.booleans())
def test_any_name_is_written_so_that_toml_reads_it(name: str, pos: int, inclusive: bool) -> None:
    found = tomllib.loads(ClientProgress(Position(name, pos), 7, inclusive).encoded())
    assert (found["mastername"], found["masterpos"], found["offset"]) == (name, pos, 7)
    assert found.get("inclusive", False) is inclusive


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert load(tmp_path / "Repl.info") is None


@pytest.mark.parametrize(
    "text", ["", "mastername = ", 'mastername = "a"', 'mastername = ""\nmasterpos = 1\noffset = 1']
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "Repl.info"
    path.write_text(text)
    with pytest.raises(OffsetFileError, match=r"Repl\.info is damaged: it needs mastername, masterpos and offset"):
        load(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "Repl.info"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(OffsetFileError, match="cannot be read"):
        load(path)


def test_a_file_that_cannot_be_written_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "Repl.info"
    save(path, ClientProgress(Position("a.1", 4), 1))
    (tmp_path / "Repl.info.new").mkdir()
    with pytest.raises(OffsetFileError, match="cannot be written"):
        save(path, ClientProgress(Position("a.1", 5), 2))
    assert load(path) == ClientProgress(Position("a.1", 4), 1)
