"""``rowtide tables --job FILE``: the options of a run, and those of single tables, in one YAML file.

The names in the file are those of the options. A list stands for a repeated option, and a map for an option NAME=VALUE.
The schema of the file follows from the options, so it is always complete. All problems of a file are reported together,
each with its line.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click

from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.settings import Layout
from rowtide.topics.java_regex import Replacement, compile_java

Check = Callable[[str], object]
"""Takes the text of a value, and raises :class:`SettingsError` or :class:`ValueError` if it is wrong."""

_NOT_IN_FILES = {"job", "job_schema", "restart", "help"}
_PAIRS = "NAME=VALUE"
TABLES, TABLE, INTO, SHARD = "tables", "table", "into", "shard-column"
"""The list of tables; and in each of its elements the pattern, its replacement, and the column that names the table."""
_EXAMPLE = "shop[.]orders"
_TABLE_OPTIONS = frozenset({
    "append", "soft_delete", "history", "keyless", "metadata", "table_properties", "schema_change", "include_changes",
    "exclude_changes", "max_records", "partition_by", "cluster_by",
    "where", "columns", "compute",
})  # fmt: skip
"""The options that can be set for single tables."""


@dataclass(frozen=True, slots=True)
class PatternOptions:
    """The options of the tables whose names match a pattern.

    Attributes:
        pattern: a Java regular expression of ``DATABASE.TABLE``.
        line: the line in the file.
        into: a Java replacement for the name of the table in the output; ``None`` keeps it.
        given: the options by the names of their parameters.
        shard_column: the column that names the table of MySQL, of several that get the same name; ``None`` if none do.
    """

    pattern: str
    line: int
    given: Mapping[str, Any]
    into: str | None = None
    shard_column: str | None = None


@dataclass(slots=True)
class JobFile:
    """A file of options.

    Attributes:
        path: the path of the file.
        given: the options by the names of their parameters.
        tables: the options of single tables, in the order of the file.
    """

    path: Path
    given: dict[str, Any] = field(default_factory=dict)
    tables: list[PatternOptions] = field(default_factory=list)


def json_schema(command: click.Command) -> dict[str, Any]:
    """Return the JSON schema of a file."""
    options = _options(command)
    of_tables = {name: _schema_of(option) for name, option in options.items() if option.name in _TABLE_OPTIONS}
    pattern = {
        "type": "string",
        "description": "Java regular expression of DATABASE.TABLE. The first element that matches a table counts.",
    }
    into = {
        "type": "string",
        "description": "DATABASE.TABLE in the output. $1 is the first group of the pattern.",
    }
    shard = {
        "type": "string",
        "description": "With into: several tables become one, and this column of it has DATABASE.TABLE in MySQL.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rowtide tables --job",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **{name: _schema_of(option) for name, option in options.items()},
            TABLES: {
                "type": "array",
                "description": "Options of single tables.",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": [TABLE],
                    "properties": {TABLE: pattern, INTO: into, SHARD: shard, **of_tables},
                },
            },
        },
    }


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options that a file can have, by their names in it."""
    return {
        max(option.opts, key=len).removeprefix("--"): option
        for option in command.params
        if isinstance(option, click.Option) and option.name not in _NOT_IN_FILES
    }


def _schema_of(option: click.Option) -> dict[str, Any]:
    found: dict[str, Any]
    if option.is_flag:
        found = {"type": "boolean"}
    elif isinstance(option.type, click.Choice):
        found = {"enum": [str(choice) for choice in option.type.choices]}
    elif isinstance(option.type, click.IntRange):
        limits = {"minimum": option.type.min, "maximum": option.type.max}
        found = {"type": "integer", **{name: limit for name, limit in limits.items() if limit is not None}}
    else:
        found = {"type": ["string", "number"]}
    if option.metavar == _PAIRS:
        found = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    elif option.multiple:
        found = {"oneOf": [found, {"type": "array", "items": found}]}
    return {"description": " ".join((option.help or "").split()), **found}


def read_job(path: Path, command: click.Command, checks: Mapping[str, Check]) -> JobFile:
    """Read a file.

    Args:
        path: the path of the file.
        command: the command whose options it has.
        checks: check the values of options, by the names of their parameters.

    Raises:
        SettingsError: the file has problems; the text has all of them.
    """
    try:
        import yaml  # noqa: PLC0415 - only needed for a file
    except ModuleNotFoundError:
        raise SettingsError("--job needs the package pyyaml: pip install 'rowtide[connector]'") from None
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--job {path} cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise SettingsError(f"--job {path}{line}: YAML syntax error: {error.problem}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"--job {path}: {error}") from error
    reader = _Reader(JobFile(path), _options(command), checks)
    reader.read(root)
    if reader.problems:
        count = len(reader.problems)
        lines = "\n".join(f"  line {line}: {text}" for line, text in sorted(reader.problems, key=lambda one: one[0]))
        raise SettingsError(f"--job {path} has {count} problem{'s' if count > 1 else ''}:\n{lines}")
    return reader.job


class _Wrong(Exception):
    """Raised for a wrong value."""


@dataclass(slots=True)
class _Reader:
    """Reads the nodes of a file, and collects its problems with their lines."""

    job: JobFile
    options: Mapping[str, click.Option]
    checks: Mapping[str, Check]
    problems: list[tuple[int, str]] = field(default_factory=list)

    def read(self, root: Any) -> None:
        if root is None:
            self.problems.append((1, "the file is empty: name at least an output, and --config or --topic-prefix"))
            return
        self._read_map(root, self.options, self.job.given, {TABLES: self._read_tables})

    def _read_tables(self, node: Any) -> None:
        if node.id != "sequence":
            self._report(node, f"{TABLES}: expected a list, with '- {TABLE}: PATTERN' for each element")
            return
        of_table = {name: option for name, option in self.options.items() if option.name in _TABLE_OPTIONS}
        for element in node.value:
            given: dict[str, Any] = {}
            names: dict[str, str] = {}

            def read(name: str, value: Any, names: dict[str, str] = names) -> None:
                with self._problems_of(name, value):
                    text = _text(value)
                    if name == TABLE:
                        compile_java(text)
                    names[name] = text

            others = {name: partial(read, name) for name in (TABLE, INTO, SHARD)}
            self._read_map(element, of_table, given, others, f"{TABLE}: {_EXAMPLE}")
            if element.id == "mapping" and not any(key.value == TABLE for key, _ in element.value):
                self._report(
                    element, f"{TABLE} is missing: give a regular expression of DATABASE.TABLE, such as {_EXAMPLE}"
                )
            if SHARD in names and INTO not in names:
                self._report(element, f"{SHARD} needs {INTO}, the name of the table that has the rows of all shards")
            if {TABLE, INTO} <= names.keys():
                with self._problems_of(INTO, element):
                    Replacement(names[INTO], compile_java(names[TABLE]))
            line = element.start_mark.line + 1
            self.job.tables.append(PatternOptions(names.get(TABLE, ""), line, given, names.get(INTO), names.get(SHARD)))

    def _read_map(
        self,
        node: Any,
        options: Mapping[str, click.Option],
        given: dict[str, Any],
        others: Mapping[str, Callable[[Any], None]],
        example: str = "output: /data/tables",
    ) -> None:
        if node.id != "mapping":
            self._report(node, f"expected a map of options, such as '{example}'")
            return
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value) if key.id == "scalar" else ""
            if name in seen:
                self._report(key, f"{name} appears twice: remove one of them")
            elif name in others:
                others[name](value)
            elif name not in options:
                self._report(key, _unknown(name, [*options, *others], self.options))
            else:
                option = options[name]
                with self._problems_of(name, value):
                    given[str(option.name)] = self._value(option, value)
            seen.add(name)
        layouts = [layout for layout in Layout if given.get(layout.replace("-", "_"))]
        if len(layouts) > 1:
            self._report(node, f"{' and '.join(layouts)}: choose one of them")

    def _value(self, option: click.Option, node: Any) -> Any:
        """Return the value of an option as it would be on the command line.

        Raises:
            _Wrong: it is not a valid value.
        """
        if option.metavar == _PAIRS:
            return self._pairs(option, node)
        if not option.multiple:
            return self._one(option, node)
        elements = node.value if node.id == "sequence" else [node]
        return [self._one(option, element) for element in elements]

    def _pairs(self, option: click.Option, node: Any) -> list[str]:
        if node.id != "mapping":
            raise _Wrong("expected a map, such as {NAME: VALUE}")
        pairs: dict[str, str] = {}
        for key, value in node.value:
            name = _text(key)
            if name in pairs:
                raise _Wrong(f"{name} appears twice: remove one of them")
            if "=" in name:
                raise _Wrong(f"{name}: a name cannot contain =")
            pairs[name] = _text(value)
        return [f"{name}={text}" for name, text in pairs.items()]

    def _one(self, option: click.Option, node: Any) -> Any:
        text = _text(node)
        if option.is_flag:
            if not node.tag.endswith(":bool"):
                raise _Wrong(f"{text}: expected true or false")
            return text.lower() in ("true", "yes", "on")
        try:
            value = option.type.convert(text, option, None)
        except click.BadParameter as error:
            if isinstance(option.type, click.IntRange):
                most = "" if option.type.max is None else f" and at most {option.type.max}"
                raise _Wrong(f"{text}: expected a whole number of at least {option.type.min}{most}") from error
            raise _Wrong(error.message.rstrip(".")) from error
        try:
            self.checks.get(str(option.name), str)(text)
        except (SettingsError, ValueError) as error:
            raise _Wrong(str(error).strip()) from error
        return text if isinstance(value, Path) else value

    def _report(self, node: Any, text: str) -> None:
        self.problems.append((node.start_mark.line + 1, text))

    @contextmanager
    def _problems_of(self, name: str, node: Any) -> Iterator[None]:
        """Report the errors that a value raises while the context is open."""
        try:
            yield
        except (_Wrong, SettingsError, ValueError) as error:
            self._report(node, f"{name}: {error}")


def _text(node: Any) -> str:
    """Return the text of a scalar.

    Raises:
        _Wrong: the node is not a scalar.
    """
    if node.id != "scalar" or node.tag.endswith(":null"):
        raise _Wrong("a value is missing" if node.id == "scalar" else "expected a single value")
    return str(node.value)


def _unknown(name: str, known: Iterable[str], options: Mapping[str, click.Option]) -> str:
    if name == "restart":
        return "restart is an action, not a setting: give it on the command line"
    if name in options:
        return f"{name} applies to all tables: move it to the top of the file"
    close = difflib.get_close_matches(name.removeprefix("--").replace("_", "-"), [*known], 1)
    hint = f"did you mean {close[0]}?" if close else "rowtide tables --job-schema prints all names"
    return f"{name} is unknown: {hint}"
