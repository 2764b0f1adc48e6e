"""Column converters in Python: ``converters=cents`` with ``cents.type=python:package.module.Class``.

They are Debezium's ``CustomConverter``: a class with ``converter_for(column, registration)``, which is called for each
captured column of each table, and may register a schema and a function for its values. ``configure(options)`` is
optional. Here, only the name of the class is known; :mod:`rowtide.envelope.transforms.python_hook` imports it.
Debezium's own converters are in :mod:`rowtide.envelope.debezium_column_converters`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from rowtide.envelope.custom_converter import CONVERTED, CustomConverter, Registered, Registration, RelationalColumn
from rowtide.envelope.debezium_column_converters import DEBEZIUM
from rowtide.envelope.transforms.chain import Plugin
from rowtide.envelope.transforms.options import Options, TransformConfigurationError
from rowtide.envelope.transforms.python_hook import configured_object
from rowtide.envelope.transforms.validation import Check, schema_check
from rowtide.envelope.types.column_type import ColumnType, Kind, via_connect_value
from rowtide.envelope.types.defaults import default_value
from rowtide.schema_history.model import Column, Table


class ColumnConverterError(ValueError):
    """A column converter failed.

    Attributes:
        detail: details, which may contain a value of a row.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


def _as_it_is(_kind: Kind, _column: Column) -> Callable[[Any], Any]:
    return lambda value: value


class ColumnConverters:
    """The converters of a configuration, in order: the first one that registers a function for a column applies.

    Args:
        plugins: their configurations.
        value_of: returns the function from a column's canonical value to the argument of a converter.

    Raises:
        TransformConfigurationError: a class cannot be used; it lists all problems.
    """

    def __init__(
        self,
        plugins: Sequence[Plugin] = (),
        value_of: Callable[[Kind, Column], Callable[[Any], Any]] = _as_it_is,
    ) -> None:
        self._plugins = tuple(plugins)
        self._value_of = value_of
        problems: list[Any] = []
        self._converters: list[tuple[Plugin, CustomConverter]] = []
        for plugin in self._plugins:
            options = Options(f"{plugin.name}.", plugin.options)
            made = _made(plugin, options)
            problems += options.problems
            if made is not None:
                self._converters.append((plugin, made))
        if problems:
            raise TransformConfigurationError(problems)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnConverters) and self._plugins == other._plugins

    def __hash__(self) -> int:
        return hash(tuple(plugin.name for plugin in self._plugins))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it without the user's objects, which another process creates again."""
        return ColumnConverters, (self._plugins, self._value_of)

    def type_of(self, table: Table, column: Column, standard: ColumnType, *, exact: bool) -> ColumnType | None:
        """Return the type that a converter registers for a column, ``None`` if none does.

        Args:
            table: its table.
            column: the column, with Debezium's description.
            standard: its type without converters.
            exact: see :func:`~rowtide.envelope.types.defaults.default_value`.

        Raises:
            ColumnConverterError: a converter raised an error, or registered something invalid.
        """
        debezium = column.debezium
        if not self._converters or debezium is None:
            return None
        plain = replace(standard, convert=self._value_of(standard.kind, column), epoch=None)
        default = default_value(debezium, plain, exact=exact)
        described = RelationalColumn(
            debezium.name,
            str(table.id),
            debezium.type_name.upper(),
            debezium.type_expression.upper(),
            debezium.length,
            debezium.scale,
            debezium.optional,
            debezium.has_default,
            default,
            debezium.charset_name,
            debezium.jdbc_type,
        )
        for plugin, converter in self._converters:
            registration = Registration()
            try:
                converter.converter_for(described, registration)
            except Exception as error:
                raise ColumnConverterError(
                    f"table {table.id}, column {debezium.name}: converters: {plugin.name} ({plugin.type}) raised "
                    f"{type(error).__name__}: {error}"
                ) from error
            if registration.registered is not None:
                has_default = default_value(debezium, standard, exact=exact) is not None
                return _custom(plugin, described, plain, registration.registered, has_default=has_default)
        return None


def _custom(
    plugin: Plugin, column: RelationalColumn, plain: ColumnType, registered: Registered, *, has_default: bool
) -> ColumnType:
    """Return the type of a column that is converted by a registered function."""
    schema, convert, null, fixed = registered
    name = f"converters: {plugin.name} ({plugin.type})"
    nullable = schema.with_optional(column.optional or schema.optional)
    check = schema_check(nullable)

    def checked(value: Any) -> Any:
        try:
            result = convert(value)
        except Exception as error:
            raise ColumnConverterError(f"{name} raised {type(error).__name__}", str(error)) from error
        try:
            check(result, "the column")
        except ValueError as error:
            kind = "null" if result is None else f"a {type(result).__name__}"
            raise ColumnConverterError(f"{name} returned {kind}, which does not fit its schema", str(error)) from None
        return result

    def converted(value: Any) -> Any:
        given = plain.convert(value)
        return None if given is None else checked(given)  # a document of no bytes is null

    if null is not None:
        _checked_constant(name, column, "NULL", null, check)
    default = None
    if fixed is not CONVERTED:
        default = fixed if has_default else None
        if default is not None:
            _checked_constant(name, column, "the default", default, check)
    elif column.default is not None:
        try:
            default = checked(column.default)
        except ColumnConverterError as error:
            raise ColumnConverterError(
                f"table {column.table}, column {column.name}: the default of the column: {error}: {error.detail}"
            ) from error
    return replace(
        plain,
        schema=schema,
        convert=converted,
        expression=via_connect_value(schema, converted),
        form=None,
        object_form=None,
        is_custom=True,
        custom_default=schema.default if default is None else default,
        custom_null=null,
    )


def _checked_constant(name: str, column: RelationalColumn, of: str, value: Any, check: Check) -> None:
    try:
        check(value, of)
    except ValueError as error:
        raise ColumnConverterError(f"table {column.table}, column {column.name}: {name}: {error}") from None


def _made(plugin: Plugin, options: Options) -> CustomConverter | None:
    """Return Debezium's converter or the user's object; errors become problems."""
    if plugin.type in DEBEZIUM:
        converter = DEBEZIUM[plugin.type](options)
        options.problems += options.unknown()
        return converter
    made = configured_object(plugin.type, options, "converter_for(column, registration)", DEBEZIUM)
    return cast("CustomConverter | None", made)
