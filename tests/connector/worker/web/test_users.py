"""The file of the web server's users."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.worker.web.access import Role, User
from rowtide.connector.worker.web.users import UsersFile


def write(path: Path, text: str) -> str:
    """Write a file with another time of change than before."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 1, before + 1))
    return str(path)


def test_users_have_passwords_or_tokens_and_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENS", "geheim")
    path = tmp_path / "users.properties"
    text = "anna.b.password=p:1\nanna.b.role=edit\nben.token=${env:BENS}\nben.password=x\nben.role=read\n"
    users = UsersFile(write(path, text))
    assert list(users()) == [User("anna.b", Role.EDIT, "p:1"), User("ben", Role.READ, "x", "geheim")]
    assert "geheim" not in repr(users())


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["no user: expected USER.password, USER.token and USER.role"]),
        ("anna.password=p", ["anna.role: is missing: read, operate, edit"]),
        ("anna.role=edit", ["anna.password: is missing, and there is no token"]),
        ("anna.role=admin\nanna.password=", ["anna.role: 'admin' is not a role", "anna.password: is empty"]),
        ("anna=secret", ["anna: expected USER.password"]),
        (".role=edit", [".role: expected USER.password"]),
        ("a\\:b.role=edit", ["a:b.role: expected USER.password, USER.token and USER.role; a user's name has no colon"]),
        ("anna.key=secret", ["anna.key: expected USER.password"]),
        (
            "a.token=t\na.role=read\nb.token=t\nb.role=edit",
            ["a.token: is also that of another user", "b.token: is also that of"],
        ),
        ("a.token=${env:NOT_SET}\na.role=read", ["a.token: ${env:NOT_SET} cannot be resolved"]),
    ],
)
def test_all_problems_are_reported_without_secrets(tmp_path: Path, text: str, problems: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        UsersFile(write(tmp_path / "users.properties", text))
    assert len(caught.value.problems) == len(problems)
    assert all(problem in str(caught.value) for problem in problems)
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"users\.properties.*No such file"):
        UsersFile(str(tmp_path / "users.properties"))


def test_a_changed_file_is_read_again_and_a_wrong_one_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "users.properties"
    users = UsersFile(write(path, "a.token=1\na.role=read"))
    write(path, "a.token=2\na.role=read")
    assert [user.token for user in users()] == ["2"]
    caplog.set_level(logging.ERROR)
    write(path, "a.token=secret")
    assert [[user.token for user in users()] for _ in range(2)] == [["2"], ["2"]]
    errors = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "its former users remain" in errors[0]
    path.unlink()
    assert [user.token for user in users()] == ["2"]
    write(path, "b.token=3\nb.role=edit")
    assert [user.name for user in users()] == ["b"]
