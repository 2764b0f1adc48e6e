"""The user and the password of each log-in, which may change while the connector runs."""

import logging
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace

from rowtide.connector.config.catalogue.connection import PASSWORD, PASSWORD_SOURCE, USER
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.files.config_providers import resolve
from rowtide.connector.config.files.files import providers
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.config.secret import PasswordSource, Secret
from rowtide.connector.source.connection.errors import DatabaseUnreachableError
from rowtide.envelope.transforms.python_hook import HookNotFoundError, imported

log = logging.getLogger(__name__)

_LONGEST_MESSAGE = 300
_ARGUMENT = re.compile(r"(?!-)[\w.:@%+=,/\[\]-]*")
"""A host or user that no program takes for an option, and no shell for a command: requests may have configured it."""


def renewed(config: DatabaseConfig) -> DatabaseConfig:
    """Return the settings of a connection with the current user and password.

    Values in files are read again. While a file cannot be read because it is being replaced, the values read at the
    start are used.

    Raises:
        DatabaseUnreachableError: the source of the password does not provide one.
    """
    renewal = config.renewal
    if renewal is None:
        return config
    values, problems = resolve(renewal.references, providers(os.environ))
    for name, message in problems:
        log.warning("%s: %s; the value read at the start is used", name, message)
    wrong = {name for name, _ in problems}
    known = {name: text for name, text in values.items() if name not in wrong}
    config = replace(
        config,
        user=known.get(USER.name, config.user),
        password=Secret(known[PASSWORD.name]) if PASSWORD.name in known else config.password,
    )
    return config if renewal.source is None else replace(config, password=Secret(_from_source(config, renewal.source)))


def _from_source(config: DatabaseConfig, source: PasswordSource) -> str:
    found = _from_command(config, source.command) if source.command else _from_function(config, source.function)
    if not found:
        raise _no_password(config, "it has returned an empty password")
    return found


def _from_command(config: DatabaseConfig, command: tuple[str, ...]) -> str:
    program, seconds = command[0], config.connect_timeout_ms / 1000
    given = {"{host}": config.hostname, "{port}": str(config.port), "{user}": config.user}
    words = list(command)
    for name, text in given.items():
        if any(name in word for word in command) and _ARGUMENT.fullmatch(text) is None:
            message = f"{name} would be {text!r}, which a shell may take for a command; use python:… instead"
            raise _no_password(config, message, passes=False)
        words = [word.replace(name, text) for word in words]
    try:
        code, output, messages = _run(words, seconds)
    except subprocess.TimeoutExpired:
        message = f"{program} did not end within {seconds:.0f} s (connect.timeout.ms)"
        raise _no_password(config, message) from None
    except OSError as error:
        raise _no_password(config, f"{program} cannot be run: {error.strerror}") from None
    if code:
        said = messages.decode("utf-8", "replace").strip().rpartition("\n")[2][:_LONGEST_MESSAGE]
        raise _no_password(config, f"{program} has ended with exit code {code}: {said or 'without a message'}")
    return output.decode("utf-8", "replace").strip("\r\n")


def _run(words: Sequence[str], seconds: float) -> tuple[int, bytes, bytes]:
    """Run a program, and end it with all its child processes if it takes too long.

    Returns:
        The exit code, the output and the messages.

    Raises:
        subprocess.TimeoutExpired: it did not end.
        OSError: it cannot be run.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        try:
            output, messages = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output, messages


def _from_function(config: DatabaseConfig, name: str) -> str:
    try:
        function = imported(name)
    except (HookNotFoundError, AttributeError) as error:
        raise _no_password(config, str(error), passes=False) from None
    except Exception as error:
        message = f"{name} cannot be imported: {type(error).__name__}: {error}"
        raise _no_password(config, message, passes=False) from error
    try:
        found = function(config.hostname, config.port, config.user)
    except Exception as error:
        raise _no_password(config, f"{name} has failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, str):
        raise _no_password(config, f"{name} must return a string, not {type(found).__name__}", passes=False)
    return found


def _no_password(config: DatabaseConfig, message: str, *, passes: bool = True) -> DatabaseUnreachableError:
    """Return the error if there is no password; a later attempt may succeed if an earlier one has."""
    known = config.renewal is not None and config.renewal.accepted
    return DatabaseUnreachableError(Problem(PASSWORD_SOURCE.name, message), retriable=passes and known)
