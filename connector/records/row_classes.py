"""The source of a Python module with a class for the rows of each table."""

import builtins
import json
import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator

from rowtide.connector.records.typed_rows import COLUMN
from rowtide.envelope.table import RecordColumn, TableSchema
from rowtide.envelope.types.column_type import Kind
from rowtide.schema_history.model import Column

_TYPES: dict[Kind, str] = {
    "int": "int",
    "year": "int",
    "decimal": "decimal.Decimal",
    "float": "float",
    "date": "dt.date",
    "datetime": "dt.datetime",
    "timestamp": "dt.datetime",
    "time": "dt.timedelta",
    "bytes": "bytes",
    "geometry": "rowtide.Geometry",
    "vector": "list[float]",
}
_USED = frozenset(
    {
        "bool", "bytes", "float", "int", "list", "str", "dataclasses", "decimal", "dt", "pydantic", "rowtide", "typing",
    }
)  # fmt: skip
"""Names in the annotations, which a field of the same name would hide."""
_OF_MODELS = frozenset(
    {
        "construct", "copy", "dict", "from_orm", "json", "mro", "parse_file", "parse_obj", "parse_raw", "register",
        "schema", "schema_json", "update_forward_refs", "validate",
    }
)  # fmt: skip
"""Attributes of every pydantic model, besides those that begin with model_."""


def classes_module(tables: Iterable[TableSchema], connector: str, *, pydantic: bool) -> str:
    """Return the source of a module with a class for the rows of each table.

    Args:
        tables: the schemas of the tables' records.
        connector: the connector's name.
        pydantic: whether the classes are pydantic models, and not dataclasses.
    """
    tables = list(tables)
    names = _class_names(tables)
    classes = [_class(table, name, pydantic=pydantic) for table, name in zip(tables, names, strict=True)]
    body = "\n\n\n".join(classes)
    imports = [
        line
        for line, used in (
            ("import dataclasses", not pydantic),
            ("import datetime as dt", "dt." in body),
            ("import decimal", "decimal.Decimal" in body),
            ("import typing", "typing.Any" in body),
        )
        if used
    ]
    others = [line for line, used in (("import pydantic", pydantic), ("import rowtide", "rowtide." in body)) if used]
    pairs = zip(tables, names, strict=True)
    by_table = "".join(f"    {_literal(str(table.table.id))}: {name},\n" for table, name in pairs)
    head = f'"""{_doc(f"Rows of the tables of the connector {connector}, from rowtide.models().")}"""'
    groups = ["\n".join(group) for group in (imports, others) if group]
    known = (
        f'TABLES: dict[str, type] = {{\n{by_table}}}\n"""The classes by the names of their tables, DATABASE.TABLE."""\n'
    )
    return "\n\n".join([head, *groups, f"\n{body}", f"\n{known}"])


def _class_names(tables: Iterable[TableSchema]) -> list[str]:
    """Return a name for each class: that of the table, with its database if several databases have such a table."""
    short = [_pascal(table.table.id.table) for table in tables]
    full = [_pascal(f"{table.table.id.database}_{table.table.id.table}") for table in tables]
    return _unique(long if short.count(name) > 1 else name for name, long in zip(short, full, strict=True))


def _pascal(name: str) -> str:
    words = re.split(r"[\W_]+", unicodedata.normalize("NFKC", name))
    text = "".join(word[:1].upper() + word[1:] for word in words)
    text = text if text.isidentifier() else f"Table{text}"
    return f"{text}_" if keyword.iskeyword(text) or text == "TABLES" or hasattr(builtins, text) else text


def _unique(names: Iterable[str]) -> list[str]:
    """Return the names; a repeated one gets a number."""
    found: list[str] = []
    for name in names:
        number, other = 2, name
        while other in found:
            other, number = f"{name}_{number}", number + 1
        found.append(other)
    return found


def _field_names(columns: Iterable[Column], *, pydantic: bool) -> list[str]:
    return _unique(_field_name(column.name, pydantic=pydantic) for column in columns)


def _field_name(column: str, *, pydantic: bool) -> str:
    text = re.sub(r"\W", "_", unicodedata.normalize("NFKC", column))
    if pydantic or text.startswith("__"):
        text = text.lstrip("_")
    of_model = pydantic and (text in _OF_MODELS or text.startswith("model_"))
    while pydantic and text.startswith("model_"):
        text = text.removeprefix("model_").lstrip("_")
    if not text.isidentifier():
        text = f"column_{text}"
    taken = keyword.iskeyword(text) or text in _USED or of_model
    return f"{text}_" if taken else text


def _class(table: TableSchema, name: str, *, pydantic: bool) -> str:
    columns = [column for column in table.columns if column.in_value]
    fields = _field_names((column.column for column in columns), pydantic=pydantic)
    by_index = {column.index: column.column.name for column in table.columns}
    key = ", ".join(by_index[index] for index in table.key_columns)
    comment = f": {table.table.comment}" if table.table.comment else ""
    doc = _doc(f"A row of {table.table.id}{comment}")
    lines = [
        f"class {name}(pydantic.BaseModel):" if pydantic else f"class {name}:",
        f'    """{doc}',
        "",
        f"    {_doc(f'Key: {key}' if key else 'It has no key')}",
        '    """',
        "",
    ]
    if pydantic:
        lines += ["    model_config = pydantic.ConfigDict(frozen=True, populate_by_name=True)", ""]
    else:
        lines.insert(0, "@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)")
    for column, field in zip(columns, fields, strict=True):
        lines += _field(column, field, pydantic=pydantic)
    return "\n".join(lines)


def _field(column: RecordColumn, name: str, *, pydantic: bool) -> Iterator[str]:
    kind = _type(column)
    declared = f"    {name}: {kind}"
    if column.column.nullable and kind != "typing.Any":
        declared += " | None"
    if name != column.column.name:
        own = _literal(column.column.name)
        named = f"dataclasses.field(metadata={{{_literal(COLUMN)}: {own}}})"
        declared += f" = pydantic.Field(alias={own})" if pydantic else f" = {named}"
    yield declared
    traits = [column.column.column_type]
    if column.column.auto_increment:
        traits.append("AUTO_INCREMENT")
    if column.column.generation is not None:
        traits.append("generated")
    if column.column.comment:
        traits.append(column.column.comment)
    yield f'    """{_doc(", ".join(traits))}"""'


def _type(column: RecordColumn) -> str:
    if column.type.is_custom:
        return "typing.Any"
    kind = column.type.kind
    if kind == "bit":
        return "bool" if (column.column.length or 1) == 1 else "int"
    if kind == "json":
        return "typing.Any" if column.column.data_type == "json" else "str"
    return _TYPES.get(kind, "str")


def _literal(text: str) -> str:
    """Return a text as a Python literal in double quotes."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _doc(text: str) -> str:
    """Return a text for a docstring, on one line."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    line = "".join(
        sign for sign in line if sign.isprintable()
    )  # before quotes are replaced: removing a character can join them
    line = line.replace("\\", "\\\\").replace('"""', "'''")
    return f"{line[:-1]}'." if line.endswith('"') else line if line.endswith(".") else f"{line}."
