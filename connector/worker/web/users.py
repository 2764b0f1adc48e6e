"""The file of the users of the web server, which is read again when it changes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.config.files.config_providers import resolve
from rowtide.connector.config.files.files import providers, read_file
from rowtide.connector.worker.web.access import Role, User
from rowtide.connector.worker.web.changing_files import ChangingFiles

_ROLES = {role.name.lower(): role for role in Role}
_FORM = "expected USER.password, USER.token and USER.role"


class UsersFile(ChangingFiles[Sequence[User]]):
    """The users in a file of properties: ``anna.password=…``, ``anna.role=edit``, ``ci.token=…``, ``ci.role=operate``.

    Values may be references such as ``${env:ANNA}``. Roles are read, operate and edit.

    Args:
        path: the file.

    Raises:
        ConfigurationError: it cannot be read, or is wrong.
    """

    def __init__(self, path: str) -> None:
        super().__init__([path], lambda: _users(Path(path)), "its former users remain")


def _users(path: Path) -> list[User]:
    found, unresolved = resolve(read_file(path).properties, providers(os.environ))
    problems = [*unresolved, *_problems(found)]
    if problems:
        raise ConfigurationError([(f"{path}: {name}", message) for name, message in problems])
    return [
        User(name, _ROLES[found[f"{name}.role"]], found.get(f"{name}.password"), found.get(f"{name}.token"))
        for name in _names(found)
    ]


def _names(properties: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(key.rpartition(".")[0] for key in properties))


def _problems(properties: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the problems as (key, message), without values, which may be secrets."""
    problems = [] if properties else [("no user", _FORM)]
    for key, value in properties.items():
        name, _, what = key.rpartition(".")
        if not name or ":" in name or what not in ("password", "token", "role"):
            problems.append((key, f"{_FORM}; a user's name has no colon"))
        elif what == "role" and value not in _ROLES:
            problems.append((key, f"{value!r} is not a role: {', '.join(_ROLES)}"))
        elif not value:
            problems.append((key, "is empty"))
    if problems:
        return problems
    tokens = [value for key, value in properties.items() if key.endswith(".token")]
    for name in _names(properties):
        if f"{name}.role" not in properties:
            problems.append((f"{name}.role", f"is missing: {', '.join(_ROLES)}"))
        if not properties.keys() & {f"{name}.password", f"{name}.token"}:
            problems.append((f"{name}.password", "is missing, and there is no token"))
        elif tokens.count(properties.get(f"{name}.token", "")) > 1:
            problems.append((f"{name}.token", "is also that of another user"))
    return problems
