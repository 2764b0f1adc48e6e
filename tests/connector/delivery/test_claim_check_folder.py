"""Values in folders: durable, by name, and errors that name the place."""

import errno
import os
import uuid
from pathlib import Path

import pytest

from rowtide.connector.delivery.claim_check_folder import open_folder
from rowtide.connector.delivery.errors import ClaimCheckUnavailable, DeliveryError

NAME = f"shop.a/{'0' * 64}"


@pytest.mark.parametrize("form", ["{path}", "file://{path}"])
def test_a_local_folder_keeps_values(tmp_path: Path, form: str) -> None:
    folder = open_folder(form.format(path=tmp_path))
    folder.put(NAME, b"v" * 100)
    folder.put(NAME, b"v" * 100)
    assert folder.get(NAME) == b"v" * 100
    assert folder.url(NAME) == f"file://{tmp_path}/{NAME}"
    assert [path.name for path in (tmp_path / "shop.a").iterdir()] == ["0" * 64]


def test_an_object_store_keeps_values() -> None:
    url = f"memory://claims/{uuid.uuid4().hex}"
    folder = open_folder(f"{url}/")
    folder.put(NAME, b"v")
    assert folder.get(NAME) == b"v"
    assert folder.url(NAME) == f"{url}/{NAME}"
    with pytest.raises(ClaimCheckUnavailable, match=f"cannot be read from {url}/other: FileNotFoundError"):
        folder.get("other")


def test_a_value_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_number: int) -> None:
        assert not (tmp_path / NAME).exists()
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = open_folder(str(tmp_path))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ClaimCheckUnavailable, match="No space left"):
        folder.put(NAME, b"v")
    assert not (tmp_path / NAME).exists()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match="does not exist: create it, or mount it"):
        open_folder(str(tmp_path / "none"))
    folder = open_folder(str(tmp_path))
    tmp_path.rmdir()
    with pytest.raises(ClaimCheckUnavailable, match="cannot be stored"):
        folder.put(NAME, b"v")
    with pytest.raises(ClaimCheckUnavailable, match="cannot be read"):
        folder.get(NAME)


def test_an_unknown_kind_of_url_says_what_to_install() -> None:
    with pytest.raises(DeliveryError, match=r"Install rowtide\[claim-check\]"):
        open_folder("nowhere://bucket/folder")
