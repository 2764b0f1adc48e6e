"""Rewrites statements as Debezium's MySQL parser does: strings in single quotes, some words in backticks."""

import re

from rowtide.schema_history.structure.context import Context

_QUOTED = re.compile(
    r"""(--[^\n]*|\#[^\n]*|/\*(?!!).*?\*/)|('(?:''|[^'\\]|\\.)*')|"((?:[^"\\]|\\.|"")*)"|(`(?:``|[^`])*`)""",
    re.DOTALL,
)
_WORDS = (
    "CUME_DIST|DENSE_RANK|FIRST_VALUE|JSON_TABLE|LAG|LAST_VALUE|LEAD|NTH_VALUE|NTILE|PERCENT_RANK|RANK|ROW_NUMBER"
    "|AUTO|MANUAL|OFFLINE|ONLINE|PARALLEL|QUALIFY|TABLESAMPLE|URL|VECTOR"
)
_ANY = re.compile(rf"\b({_WORDS})\b", re.IGNORECASE)
_TABLE_ANCHORS = (
    r"CREATE\s+(?:TEMPORARY\s+)?TABLE(?:\s+IF\s+NOT\s+EXISTS)?|ALTER\s+TABLE"
    r"|DROP\s+(?:TEMPORARY\s+)?TABLE(?:\s+IF\s+EXISTS)?|RENAME\s+TABLE|TRUNCATE(?:\s+TABLE)?"
    r"|REFERENCES|FROM|JOIN|INTO|TO|ON|LIKE"
)
_COLUMN_ANCHORS = (
    r"ADD(?:\s+COLUMN)?|CHANGE(?:\s+COLUMN)?|MODIFY(?:\s+COLUMN)?|ALTER(?:\s+COLUMN)?|DROP(?:\s+COLUMN)?"
    r"|RENAME\s+COLUMN|AFTER"
)
_KEY_ANCHORS = (
    r"(?:ADD\s+)?(?:UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?(?:INDEX|KEY)"
    r"|CREATE\s+(?:UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?INDEX|DROP\s+INDEX|(?:ADD\s+)?CONSTRAINT|(?:DROP|ALTER)\s+CHECK"
)
_OBJECT_ANCHORS = (
    r"(?:DATABASE|SCHEMA|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT)(?:\s+IF(?:\s+NOT)?\s+EXISTS)?|USE|PARTITION"
)
_AFTER_ANCHOR = re.compile(
    rf"\b({_TABLE_ANCHORS}|{_COLUMN_ANCHORS}|{_KEY_ANCHORS}|{_OBJECT_ANCHORS})\s+({_WORDS})\b", re.IGNORECASE
)
_TYPES = (
    r"(?:VAR)?CHAR|CHARACTER|NCHAR|NVARCHAR|NATIONAL|(?:TINY|SMALL|MEDIUM|BIG)?INT|INTEGER|INT[12348]|MIDDLEINT"
    r"|DECIMAL|DEC|FIXED|NUMERIC|FLOAT|FLOAT[48]|DOUBLE|REAL|SERIAL"
    r"|JSON|(?:TINY|MEDIUM|LONG)?TEXT|(?:TINY|MEDIUM|LONG)?BLOB|LONG|DATE|DATETIME|TIMESTAMP|TIME|YEAR"
    r"|ENUM|SET|BINARY|VARBINARY|BIT|BOOL|BOOLEAN|VECTOR"
    r"|GEOMETRY|GEOMETRYCOLLECTION|POINT|LINESTRING|POLYGON|MULTIPOINT|MULTILINESTRING|MULTIPOLYGON"
)
_BEFORE_TYPE = re.compile(rf"\b({_WORDS})\s+({_TYPES})\b", re.IGNORECASE)
_LABEL = re.compile(rf"\b({_WORDS})\s*:", re.IGNORECASE)


def normalized(text: str, ctx: Context) -> str:
    """Return the text of a statement in Debezium's records."""
    if ctx.mariadb:
        return text
    result, last = [], 0
    for match in _QUOTED.finditer(text):
        result.append(_with_backticks(text[last : match.start()]))
        double = match[3]
        if double is not None and not ctx.dialect.ansi_quotes:
            result.append("'" + double.replace("'", "''") + "'")
        else:
            result.append(match[0])
        last = match.end()
    result.append(_with_backticks(text[last:]))
    return "".join(result)


def _with_backticks(text: str) -> str:
    if not _ANY.search(text):
        return text
    text = _AFTER_ANCHOR.sub(r"\1 `\2`", text)
    text = _BEFORE_TYPE.sub(r"`\1` \2", text)
    return _LABEL.sub(r"`\1`:", text)


def as_single_quoted(raw: str, ctx: Context) -> str:
    """Return the text of a literal with single instead of double quotes, as read by Debezium's MySQL parser."""
    if ctx.mariadb or '"' not in raw:
        return raw
    return normalized(raw, ctx)
