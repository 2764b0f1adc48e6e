"""Files and locks through Hadoop's client, on the local disk."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture
def files(spark):
    from rowtide.spark_consumers.jvm.files import HadoopFiles

    return HadoopFiles(spark)


def test_a_new_file_never_replaces_another_one(files, tmp_path: Path) -> None:
    path = str(tmp_path / "folder" / "plan")
    files.create_new(path, "first")
    with pytest.raises(FileExistsError):
        files.create_new(path, "second")
    assert files.read(path) == "first"
    files.create(path, "third")
    assert files.read(path) == "third"
    assert files.names(str(tmp_path / "folder")) == ["plan"]


def test_of_two_runs_that_create_a_file_one_succeeds(files, tmp_path: Path, monkeypatch) -> None:
    path = str(tmp_path / "plan")
    write = type(files)._write_temporary

    def slow(self, name: str, text: str) -> str:
        monkeypatch.setattr(type(files), "_write_temporary", write)
        files.create_new(path, "other run")
        return write(self, name, text)

    monkeypatch.setattr(type(files), "_write_temporary", slow)
    with pytest.raises(FileExistsError):
        files.create_new(path, "this run")
    assert files.read(path) == "other run"
    assert files.names(str(tmp_path)) == ["plan"]


def test_a_lock_is_held_once_and_released(files, tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "t~lock")
    for _ in range(2):
        with files.lock(path), pytest.raises(BlockingIOError, match=r"process \d+ on "), files.lock(path):
            pass
