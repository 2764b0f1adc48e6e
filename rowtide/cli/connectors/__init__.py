"""The commands of running connectors, and how all commands read configurations."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from rowtide.cli.option_types import HOST
from rowtide.connector.config import Configuration, ConfigurationError, Problem, load
from rowtide.connector.config.conflicts import conflicts
from rowtide.connector.config.files.files import SUFFIXES
from rowtide.connector.worker import logs
from rowtide.connector.worker.reload import read_each
from rowtide.connector.worker.web.settings import WebSettings

__all__ = [
    "CONFIG",
    "config_argument",
    "connector_files",
    "connectors_option",
    "from_mirror_option",
    "from_options",
    "given_twice",
    "ignore_unsupported_option",
    "log_options",
    "one_connector_option",
    "read_configuration",
    "read_configurations",
    "read_connector",
    "require_files",
    "sink_option",
    "token_of",
    "web_options",
    "worker_options",
]

CONFIG = click.Path(exists=True, dir_okay=False)
"""The type of arguments and options that name configuration files."""

F = TypeVar("F", bound=Callable[..., Any])


def config_argument(*, required: bool = True) -> Callable[[F], F]:
    """Return the argument CONFIG..., one or more configuration files."""
    return click.argument("config", metavar="CONFIG...", nargs=-1, required=required, type=CONFIG)


def log_options(command: F) -> F:
    """Return the options --log-level and --log-format."""
    level = click.option(
        "--log-level",
        type=click.Choice(logs.LEVELS),
        default="info",
        show_default=True,
        help="The lowest level that is logged.",
    )
    form = click.option(
        "--log-format",
        type=click.Choice(logs.FORMATS),
        default="text",
        show_default=True,
        help="Lines of text, or one JSON object per line.",
    )
    return level(form(command))


def connectors_option(help_text: str) -> Callable[[F], F]:
    """Return the option --connector, once for each of several connectors, or for a directory of them."""
    path = click.Path(exists=True)
    return click.option("--connector", "connectors", metavar="FILE|DIR", multiple=True, type=path, help=help_text)


def one_connector_option(function: F) -> F:
    """Return the option --connector of commands that take one connector of a process."""
    return click.option(
        "--connector",
        metavar="FILE",
        type=CONFIG,
        help="The configuration of one of several connectors that run in one process. CONFIG... are then the "
        "properties of all of them, as for rowtide run.",
    )(function)


def sink_option(help_text: str) -> Callable[[F], F]:
    """Return the option --sink."""
    return click.option("--sink", metavar="kafka|stdout|file:DIR|duckdb:FILE|delta:DIR|URL", help=help_text)


def from_mirror_option(function: F) -> F:
    """Return the option --from-mirror."""
    return click.option(
        "--from-mirror",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="Read the part of the binlog that the server has purged from this mirror (rowtide mirror).  [default: "
        "rowtide.mirror.directory "
        "of CONFIG]",
    )(function)


def from_options(sink: str | None, from_mirror: str | None, *, ignore_unsupported: bool) -> dict[str, str]:
    """Return the properties that the options --sink, --from-mirror and --ignore-unsupported set."""
    given = {"rowtide.sink": sink, "rowtide.mirror.directory": from_mirror}
    more = {name: text for name, text in given.items() if text is not None}
    return more | ({"rowtide.ignore.unsupported": "true"} if ignore_unsupported else {})


def ignore_unsupported_option(function: F) -> F:
    """Return the option --ignore-unsupported."""
    return click.option(
        "--ignore-unsupported",
        is_flag=True,
        help="Skip properties of Debezium that rowtide does not support, if all records stay the same without them, "
        "and list them.",
    )(function)


_WEB_OPTIONS = (
    click.option(
        "--web-port",
        type=click.IntRange(1, 65535),
        help="Port of the web server.  [default: 6066, or a free port if it is in use]",
    ),
    click.option(
        "--web-bind",
        type=HOST,
        metavar="TEXT",
        help="Address of the web server; 0.0.0.0 for all interfaces.  [default: 127.0.0.1]",
    ),
    click.option(
        "--web-token-file",
        type=click.File(encoding="utf-8"),
        help="A file with the token of requests that control the connector. Without one (or WEB_TOKEN in the "
        "environment, or users), only programs on this machine may send them, if the web server listens on the "
        "loopback interface.",
    ),
    click.option(
        "--web-users-file",
        type=click.Path(),
        help="A file of properties with the users of the web server, their passwords or tokens, and their roles: "
        "USER.password, USER.token, USER.role (read, operate or edit). It is read again when it changes.",
    ),
    click.option(
        "--web-tls-certificate",
        type=click.Path(),
        help="Serve HTTPS with the certificate in this PEM file. It is read again when it changes.",
    ),
    click.option(
        "--web-tls-key", type=click.Path(), help="The PEM file of its key.  [default: that of the certificate]"
    ),
    click.option(
        "--web-proofs",
        type=click.Path(),
        help="Show the results of rowtide verify --every on the page: the directory of its files, each named by "
        "--proofs DIRECTORY/FILE.",
    ),
    click.option("--no-web", is_flag=True, help="Do not start the web server."),
)


def web_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options of the web server, which a command gets as ``web_settings`` and ``no_web``."""

    @functools.wraps(function)
    def command(
        *arguments: Any,
        web_port: int | None,
        web_bind: str | None,
        web_token_file: TextIO | None,
        web_users_file: str | None,
        web_tls_certificate: str | None,
        web_tls_key: str | None,
        web_proofs: str | None,
        **others: Any,
    ) -> Any:
        try:
            settings = WebSettings.choose(
                web_bind,
                web_port,
                token=token_of(web_token_file),
                users=web_users_file,
                certificate=web_tls_certificate,
                key=web_tls_key,
                proofs=web_proofs,
            )
        except ConfigurationError as error:
            raise click.ClickException(str(error)) from None
        return function(*arguments, web_settings=settings, **others)

    for option in reversed(_WEB_OPTIONS):
        command = option(command)
    return command


def worker_options(function: F) -> F:
    """Return the options --web and --web-token-file of commands that send requests to a worker."""
    web = click.option(
        "--web",
        metavar="URL",
        help="The web server of the worker. With a user, as in https://USER@…, it logs in with this user's password.  "
        "[default: http://127.0.0.1:6066]",
    )
    file = click.option(
        "--web-token-file",
        type=click.File(encoding="utf-8"),
        help="A file with the token, or the user's password, for the web server.  [default: WEB_TOKEN in the "
        "environment]",
    )
    return web(file(function))


def token_of(file: TextIO | None) -> str | None:
    """Return the token in the file of --web-token-file; ``None`` without one.

    Raises:
        click.ClickException: the file has no token, or one that a request cannot contain.
    """
    if file is None:
        return None
    try:
        token = file.read().strip()
    except UnicodeDecodeError:
        token = "\0"
    if not token:
        raise click.ClickException("the file of --web-token-file is empty: it must have a token")
    if not (token.isascii() and token.isprintable()):
        raise click.ClickException("the file of --web-token-file must have one token of printable ASCII characters")
    return token


def connector_files(common: Sequence[str], connectors: Sequence[str]) -> dict[str, list[str]]:
    """Return the configuration files of each connector, by the name that messages use: its own file.

    Args:
        common: files with the properties of all connectors, or of the only one.
        connectors: a file for each of several connectors, which overrides the common ones, or a directory of such
            files. Of these, names that begin with a dot or have another suffix than a configuration's are skipped.

    Raises:
        click.UsageError: there is no file.
    """
    if connectors:
        return {own: [*common, own] for given in connectors for own in _files_of(given)}
    if not common:
        raise click.UsageError("a configuration is needed: CONFIG... or --connector FILE")
    return {common[-1]: list(common)}


def _files_of(given: str) -> list[str]:
    """Return the file itself, or the configuration files in a directory.

    Broken links cause errors later.
    """
    folder = Path(given)
    if not folder.is_dir():
        return [given]
    return sorted(
        str(path)
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and (path.is_file() or not path.exists())
    )


def no_files(connectors: Sequence[str]) -> Problem:
    """Return the problem that the directories of --connector have no configuration file."""
    suffixes = ", ".join(sorted(SUFFIXES))
    where = ", ".join(connectors)
    return Problem("--connector", f"no configuration file is in {where}: its suffix is one of {suffixes}")


def require_files(found: Collection[str], connectors: Sequence[str]) -> None:
    """Refuse directories without a configuration file.

    Raises:
        click.ClickException: nothing was found.
    """
    if not found:
        raise click.ClickException(no_files(connectors).message)


def given_twice(connectors: Sequence[str]) -> list[Problem]:
    """Return the problem that a file of --connector is repeated, if one is."""
    files = [own for given in connectors for own in _files_of(given)]
    return [Problem("--connector", "the same file is given twice")] if len(set(files)) < len(files) else []


def read_configurations(
    common: Sequence[str], connectors: Sequence[str], more: Mapping[str, str]
) -> dict[str, Configuration]:
    """Read the configurations of one or several connectors.

    Args:
        common: files with the properties of all connectors, or of the only one.
        connectors: a file for each of several connectors, which overrides the common ones.
        more: properties from options, which override those of the files.

    Returns:
        The configurations, by their files.

    Raises:
        click.ClickException: there is no file, or the configurations have errors; the message lists all of them.
    """
    read = read_each(connector_files(common, connectors), more)
    found = {name: one for name, one in read.items() if isinstance(one, Configuration)}
    errors = {name: one for name, one in read.items() if isinstance(one, ConfigurationError)}
    problems = [f"{name}: {error}" if connectors else str(error) for name, error in errors.items()]
    if clash := [*given_twice(connectors), *conflicts(found)]:
        problems.append(str(ConfigurationError(clash)))
    if problems:
        raise click.ClickException("\n".join(problems))
    return found


def read_configuration(
    paths: Sequence[str], not_required: Collection[str] = (), more: Mapping[str, str] | None = None
) -> Configuration:
    """Read the configuration of a command.

    Args:
        paths: the configuration files; each overrides those before it.
        not_required: names of required properties that this command does not need.
        more: properties from options, which override those of the file.

    Raises:
        click.ClickException: the configuration has errors; the message lists all of them.
    """
    try:
        return load(paths, not_required=not_required, more=more)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None


def read_connector(common: Sequence[str], connector: str | None) -> Configuration:
    """Read the configuration of a command for one connector.

    Args:
        common: files with the properties of all connectors of a process, or of the only one.
        connector: the file of one of several connectors.

    Raises:
        click.ClickException: there is no file, or the configuration has errors; the message lists all of them.
    """
    ((_, files),) = connector_files(common, [connector] if connector else []).items()
    return read_configuration(files)
