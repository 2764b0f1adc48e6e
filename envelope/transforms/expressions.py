"""Expressions about a record, in Python's syntax: ``value.op == 'u' and value.before.id == 2``.

Only the following can be used: comparisons, ``and``, ``or``, ``not``, ``if``/``else``, arithmetic of numbers,
tuples, f-strings, fields, and a few functions and methods. An expression is compiled once to closures. A name between
dots is always looked up in the schema of a record, never in a Python object, and the time is at most proportional to
the size of the record: there are no loops, powers or repetitions, and regular expressions match in linear time.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, NamedTuple

from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import ConnectRecord, SchemaCache, TransformError
from rowtide.topics.java_regex import InvalidPatternError, compile_java

Evaluate = Callable[[ConnectRecord], Any]
"""Returns the value of a part of an expression."""
_Reader = Callable[[Any], Any]
"""From a value of :mod:`rowtide.envelope.schema` to that of an expression."""

_LONGEST = 10_000
"""The longest expression, in characters."""
_DEEPEST = 60
"""The deepest nesting of an expression."""
_GROWTH = 1 << 20
"""The characters that ``replace`` may insert."""
_DIGITS = 100
"""The longest text that becomes a number: products of longer ones would take long."""
_EXACT = Context(prec=150)
"""Precise enough for sums and products of two DECIMALs of 65 digits."""


class ExpressionError(ValueError):
    """An expression is invalid."""


class _Struct:
    """A struct, whose fields have a reader each."""

    __slots__ = ("_readers", "_schema", "_values")

    def __init__(self, schema: Schema, readers: Mapping[str, _Reader], values: Mapping[str, Any]) -> None:
        self._schema = schema
        self._readers = readers
        self._values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Struct) and self._values == other._values

    __hash__ = None  # type: ignore[assignment] # as of a dictionary

    def __contains__(self, name: object) -> bool:
        return name in self._readers

    def field(self, name: str) -> Any:
        reader = self._readers.get(name)
        if reader is None:
            struct = self._schema.name or "the struct"
            raise TransformError(f"{struct} has no field {name!r}; its fields are {', '.join(self._readers)}")
        return reader(self._values.get(name))


class _Headers:
    """Headers by name; if several have the same name, the last one counts, as in Debezium."""

    __slots__ = ("_found", "_reader")

    def __init__(self, record: ConnectRecord, reader: Callable[[Schema | None, Any], Any]) -> None:
        self._found = {header.name: header for header in record.headers}
        self._reader = reader

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def field(self, name: str) -> "_Attributes | None":
        header = self._found.get(name)
        if header is None:
            return None
        return _Attributes(
            "a header", {"value": self._reader(header.schema, header.value), "schema": _described(header.schema)}
        )


class _Attributes:
    """An object with a few attributes: a header or a schema."""

    __slots__ = ("_found", "_of")

    def __init__(self, of: str, found: Mapping[str, Any]) -> None:
        self._of = of
        self._found = found

    def __contains__(self, name: object) -> bool:
        return name in self._found.get("fields", ())

    def field(self, name: str) -> Any:
        if name not in self._found:
            raise TransformError(f"{self._of} has no {name!r}; it has {', '.join(self._found)}")
        return self._found[name]


_SCHEMA = ("name", "version", "type", "optional", "fields")
"""The attributes of a schema; ``fields`` are their names."""
_WITH_FIELDS = (_Struct, _Headers, _Attributes)


def _described(schema: Schema | None) -> _Attributes | None:
    if schema is None:
        return None
    fields = tuple(field.name for field in schema.fields)
    found = (schema.name, schema.version, schema.type, schema.optional, fields)
    return _Attributes("a schema", dict(zip(_SCHEMA, found, strict=True)))


def compile_expression(text: str, *, boolean: bool, exact: bool = False) -> Evaluate:
    """Compile an expression to a function of a record, which raises ``TransformError`` if it has no value there.

    Args:
        text: the expression.
        boolean: the result must be true or false; otherwise, a string or null.
        exact: a null stays null where the schema has a default. Debezium's scripts see the default.

    Raises:
        ExpressionError: it is not an expression of this language, or cannot return such a value.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(
            f"has {len(text)} characters, but at most {_LONGEST} are allowed: write a transform in Python"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an invalid escape, such as that of '\\d' without r in front
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        place = f" at character {error.offset}" if error.offset else ""
        raise ExpressionError(f"{text!r} is not an expression in Python's syntax: {error.msg}{place}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(
            f"is not an expression in Python's syntax: {error or 'it is too deeply nested'}"
        ) from None
    compiled = _Compiler(exact=exact).compile(tree)
    wanted = "true or false" if boolean else "a string or None"
    for node in _results(tree):
        kind = _kind_of_result(node)
        if kind is not None and kind not in (("bool",) if boolean else ("str", "NoneType")):
            raise ExpressionError(f"{_shown(node)} gives {_NAMES.get(kind, kind)}, but the result must be {wanted}")
    if boolean and isinstance(tree, ast.BoolOp):
        return lambda record: bool(compiled(record))

    def evaluate(record: ConnectRecord) -> Any:
        result = compiled(record)
        if isinstance(result, bool) if boolean else result is None or isinstance(result, str):
            return result
        hint = f": compare it, as in {_shown(tree)} == 1" if isinstance(result, int | Decimal) and boolean else ""
        raise TransformError(f"{_shown(tree)} gave {_named(result)}, not {wanted}{hint}")

    return evaluate


def _results(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of an expression that can be its result."""
    match node:
        case ast.IfExp():
            yield from _results(node.body)
            yield from _results(node.orelse)
        case ast.BoolOp():
            for value in node.values:
                yield from _results(value)
        case _:
            yield node


def _kind_of_result(node: ast.expr) -> str | None:
    """Return the class of a part's value, ``None`` if it depends on the record."""
    match node:
        case ast.Constant():
            return type(node.value).__name__
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return "bool"
        case ast.JoinedStr() | ast.Name(id="topic"):
            return "str"
        case ast.Tuple() | ast.List():
            return "tuple"
        case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
            return _FUNCTIONS[name].gives
        case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
            return _METHODS[name].gives
    return None


_NAMES = {
    "NoneType": "null", "bool": "true or false", "int": "a number", "float": "a number", "Decimal": "a number",
    "str": "a string", "bytes": "bytes", "list": "an array", "tuple": "a tuple", "dict": "a map", "_Struct": "a struct",
    "_Headers": "the headers",
}  # fmt: skip


def _named(value: Any) -> str:
    """Return a description of a value without the value, because messages do not contain values of rows."""
    return "a header or schema" if isinstance(value, _Attributes) else _NAMES[type(value).__name__]


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 80 else f"{text[:77]}..."


class _Function(NamedTuple):
    """A function or method.

    Attributes:
        gives: the class of its result, ``None`` if it depends on the record.
        least, most: the number of its arguments.
        call: the function, of the values of its arguments; for a method, the text comes first.
    """

    gives: str | None
    least: int
    most: int
    call: Callable[..., Any]


def _replace(text: str, old: str, new: str) -> str:
    if not old or text.count(old) * len(new) > _GROWTH:
        raise ValueError
    return text.replace(old, new)


def _to_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _to_integer(value: Any) -> int:
    if not isinstance(value, str | int | Decimal | float):
        raise TypeError
    if isinstance(value, str) and len(value) > _DIGITS:
        raise ValueError
    return int(value)


def _length(value: Any) -> int:
    if not isinstance(value, str | bytes | list | dict | tuple):
        raise TypeError
    return len(value)


def _get(value: Any, *names: str) -> Any:
    for name in names:
        if value is None:
            return None
        value = _field(value, name)
    return value


def _field(value: Any, name: str) -> Any:
    if isinstance(value, _WITH_FIELDS):
        return value.field(name)
    raise TransformError(f"{_named(value)} has no field {name!r}")


_FUNCTIONS: Mapping[str, _Function] = {
    "get": _Function(None, 2, 20, _get),
    "fullmatch": _Function("bool", 2, 2, lambda pattern, text: text is not None and bool(pattern.fullmatch(text))),
    "search": _Function("bool", 2, 2, lambda pattern, text: text is not None and bool(pattern.search(text))),
    "len": _Function("int", 1, 1, _length),
    "str": _Function("str", 1, 1, _to_text),
    "int": _Function("int", 1, 1, _to_integer),
}
_METHODS: Mapping[str, _Function] = {
    "startswith": _Function("bool", 1, 1, str.startswith),
    "endswith": _Function("bool", 1, 1, str.endswith),
    "lower": _Function("str", 0, 0, str.lower),
    "upper": _Function("str", 0, 0, str.upper),
    "strip": _Function("str", 0, 0, str.strip),
    "replace": _Function("str", 2, 2, _replace),
}
_ORDERS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_ARITHMETIC: Mapping[type[ast.operator], tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    ast.Add: (operator.add, _EXACT.add),
    ast.Sub: (operator.sub, _EXACT.subtract),
    ast.Mult: (operator.mul, _EXACT.multiply),
    ast.Div: (operator.truediv, _EXACT.divide),
    ast.Mod: (operator.mod, _EXACT.remainder),
}
_VARIABLES = ("key", "value", "keySchema", "valueSchema", "topic", "header")


def _class(value: Any) -> Any:
    """Compare two values, which must be of the same class."""
    return "number" if isinstance(value, int | float | Decimal) else type(value)


def _comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two numbers in a form in which 3.2 equals the DECIMAL 3.20; other values are unchanged."""
    if isinstance(a, Decimal) and isinstance(b, float):
        return a, Decimal(repr(b))
    if isinstance(a, float) and isinstance(b, Decimal):
        return Decimal(repr(a)), b
    return a, b


class _Compiler:
    """Compiles the nodes of an expression."""

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact
        self._readers: SchemaCache[_Reader] = SchemaCache()
        self._depth = 0

    def compile(self, node: ast.expr) -> Evaluate:
        """Compile a node and those in it."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError(f"is nested more than {_DEEPEST} times: write a transform in Python")
        try:
            return self._compiled(node)
        finally:
            self._depth -= 1

    def _compiled(self, node: ast.expr) -> Evaluate:
        match node:
            case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | str | bytes):
                return lambda record: value
            case ast.Name(id=name):
                return self._variable(name)
            case ast.Attribute(value=of, attr=name):
                return self._access(node, of, name)
            case ast.Subscript(value=of, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                return self._part(node, of, lower, upper)
            case ast.Subscript(value=of, slice=ast.Constant(value=str(name))):
                return self._access(node, of, name)
            case ast.BoolOp(op=op, values=values):
                return self._logic([self.compile(value) for value in values], all_of=isinstance(op, ast.And))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inverted = self.compile(operand)
                return lambda record: not inverted(record)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._binary(node, lambda record: 0, self.compile(operand), ast.Sub)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chooses, yes, no = self.compile(test), self.compile(body), self.compile(orelse)
                return lambda record: yes(record) if chooses(record) else no(record)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return self._binary(node, self.compile(left), self.compile(right), type(op))
            case ast.Compare():
                return self._comparisons(node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                items = [self.compile(element) for element in elements]
                return lambda record: tuple(item(record) for item in items)
            case ast.JoinedStr(values=values):
                parts = [self._formatted(value) for value in values]
                return lambda record: "".join(part(record) for part in parts)
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._call(node, function, arguments)
        raise ExpressionError(
            f"{_shown(node)} is not possible: an expression has fields, comparisons, and/or/not, if/else, "
            f"arithmetic of numbers, tuples, f-strings, the functions {', '.join(_FUNCTIONS)}, and the methods of "
            f"a string {', '.join(_METHODS)}"
        )

    def _variable(self, name: str) -> Evaluate:
        match name:
            case "key":
                return lambda record: self._read(record.key_schema, record.key)
            case "value":
                return lambda record: self._read(record.value_schema, record.value)
            case "keySchema":
                return lambda record: _described(record.key_schema)
            case "valueSchema":
                return lambda record: _described(record.value_schema)
            case "topic":
                return lambda record: record.topic
            case "header":
                return lambda record: _Headers(record, self._read)
        raise ExpressionError(
            f"there is no variable {name}: an expression has {', '.join(_VARIABLES)} (a column of a row is "
            f"value.after.{name})"
        )

    def _read(self, schema: Schema | None, value: Any) -> Any:
        return value if schema is None else self._readers.get(self._reader, schema)(value)

    def _reader(self, schema: Schema) -> _Reader:
        default = None if self._exact else schema.default
        content = self._content_reader(schema)

        def read(value: Any) -> Any:
            if value is None:
                value = default
            return value if value is None or content is None else content(value)

        return read

    def _content_reader(self, schema: Schema) -> _Reader | None:
        if schema.is_decimal:
            scale = int(dict(schema.parameters)["scale"])
            return lambda value: Decimal(value).scaleb(-scale, _EXACT)
        if schema.type == "struct":
            readers = {field.name: self._reader(field.schema) for field in schema.fields}
            return lambda value: _Struct(schema, readers, value)
        if schema.type in ("array", "map"):
            assert schema.items is not None
            item = self._reader(schema.items)
            if schema.type == "array":
                return lambda value: [item(one) for one in value]
            return lambda value: {name: item(one) for name, one in value.items()}
        return None

    def _access(self, node: ast.expr, of: ast.expr, name: str) -> Evaluate:
        if isinstance(of, ast.Name) and of.id in ("topic", "keySchema", "valueSchema"):
            known = () if of.id == "topic" else _SCHEMA
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it is a string"
                raise ExpressionError(f"{_shown(node)}: {of.id} has no {name}; {has}")
        method = name in _METHODS and isinstance(node, ast.Attribute)
        hint = f" ({_shown(node)}() with parentheses is the method of a string)" if method else ""
        struct, shown, source = self.compile(of), _shown(node), _shown(of)

        def access(record: ConnectRecord) -> Any:
            value = struct(record)
            if isinstance(value, dict):
                return value.get(name)
            if value is None:
                raise TransformError(f"{shown}: {source} is null. Write get({source}, {name!r}) for null in this case")
            try:
                return _field(value, name)
            except TransformError as error:
                raise TransformError(f"{shown}: {error}{hint}") from None

        return access

    def _part(self, node: ast.expr, of: ast.expr, lower: ast.expr | None, upper: ast.expr | None) -> Evaluate:
        text = self.compile(of)
        start, end = (None if one is None else self.compile(one) for one in (lower, upper))
        shown = _shown(node)

        def part(record: ConnectRecord) -> Any:
            value = text(record)
            bounds = [None if one is None else one(record) for one in (start, end)]
            if not isinstance(value, str | bytes) or not all(one is None or type(one) is int for one in bounds):
                raise TransformError(f"{shown}: not possible with {_named(value)}")
            return value[slice(*bounds)]

        return part

    @staticmethod
    def _logic(values: Sequence[Evaluate], *, all_of: bool) -> Evaluate:
        def logic(record: ConnectRecord) -> Any:
            result = None
            for value in values:
                result = value(record)
                if bool(result) != all_of:
                    break
            return result

        return logic

    @staticmethod
    def _binary(node: ast.expr, left: Evaluate, right: Evaluate, op: type[ast.operator]) -> Evaluate:
        plain, decimal = _ARITHMETIC[op]
        shown = _shown(node)

        def binary(record: ConnectRecord) -> Any:
            a, b = left(record), right(record)
            try:
                if _class(a) == _class(b) == "number":
                    a, b = _comparable(a, b)
                    return decimal(a, b) if isinstance(a, Decimal) or isinstance(b, Decimal) else plain(a, b)
                if op is ast.Add and isinstance(a, str) and isinstance(b, str):
                    return a + b
            except ArithmeticError as error:
                raise TransformError(f"{shown}: {type(error).__name__}") from None
            raise TransformError(f"{shown}: not possible with {_named(a)} and {_named(b)}")

        return binary

    def _comparisons(self, node: ast.Compare) -> Evaluate:
        operands = [self.compile(one) for one in (node.left, *node.comparators)]
        texts = [_shown(one) for one in (node.left, *node.comparators)]
        for op, right in zip(node.ops, node.comparators, strict=True):
            singleton = isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool))
            if isinstance(op, ast.Is | ast.IsNot) and not singleton:
                raise ExpressionError(f"{_shown(node)}: write == or != instead of is, except for None, True and False")
        steps = list(zip(node.ops, operands[1:], texts, texts[1:], strict=False))

        def compare(record: ConnectRecord) -> bool:
            a = operands[0](record)
            for op, right, text, right_text in steps:
                b = right(record)
                try:
                    if not _compared(op, a, b):
                        return False
                except (TypeError, ArithmeticError):
                    described = f"{text} is {_named(a)}, and {right_text} is {_named(b)}"
                    raise TransformError(f"{described}: they cannot be compared this way") from None
                a = b
            return True

        return compare

    def _formatted(self, node: ast.expr) -> Evaluate:
        if isinstance(node, ast.FormattedValue) and (node.conversion != -1 or node.format_spec is not None):
            raise ExpressionError(f"{_shown(ast.JoinedStr([node]))}: an f-string has no formats here")
        if not isinstance(node, ast.FormattedValue):
            return self.compile(node)
        return self._calling(_shown(node.value), _FUNCTIONS["str"].call, [self.compile(node.value)])

    def _call(self, node: ast.Call, function: ast.expr, arguments: Sequence[ast.expr]) -> Evaluate:
        shown = _shown(node)
        match function:
            case ast.Name(id=name) if name in _FUNCTIONS:
                found, given = _FUNCTIONS[name], arguments
            case ast.Attribute(value=of, attr=name) if name in _METHODS:
                found, given = _METHODS[name], (of, *arguments)
            case _:
                raise ExpressionError(
                    f"{shown}: there is no {_shown(function)}; the functions are {', '.join(_FUNCTIONS)}, and the "
                    f"methods of a string {', '.join(_METHODS)}"
                )
        if not found.least <= len(arguments) <= found.most:
            wanted = found.least if found.least == found.most else f"at least {found.least}"
            raise ExpressionError(f"{shown}: {name} takes {wanted} arguments, not {len(arguments)}")
        if isinstance(function, ast.Name) and name in ("fullmatch", "search"):
            return self._matching(node, found.call, *arguments)
        if name == "get" and not all(isinstance(one, ast.Constant) and type(one.value) is str for one in arguments[1:]):
            raise ExpressionError(f"{shown}: the names of fields must be strings, as in get(value, 'after', 'id')")
        return self._calling(shown, found.call, [self.compile(one) for one in given])

    def _matching(self, node: ast.Call, match: Callable[..., bool], pattern: ast.expr, text: ast.expr) -> Evaluate:
        if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
            raise ExpressionError(f"{_shown(node)}: the first argument is the pattern, a string in quotes")
        try:
            compiled = compile_java(pattern.value)
        except InvalidPatternError as error:
            raise ExpressionError(f"{_shown(node)}: {error}") from None
        return self._calling(_shown(node), match, [lambda record: compiled, self.compile(text)])

    @staticmethod
    def _calling(shown: str, call: Callable[..., Any], arguments: Sequence[Evaluate]) -> Evaluate:
        def calling(record: ConnectRecord) -> Any:
            values = [argument(record) for argument in arguments]
            try:
                return call(*values)
            except TransformError as error:
                raise TransformError(f"{shown}: {error}") from None
            except (TypeError, ValueError, ArithmeticError):
                given = ", ".join(_named(value) for value in values if type(value).__name__ in _NAMES)
                raise TransformError(f"{shown}: not possible with {given}") from None

        return calling


def _compared(op: ast.cmpop, a: Any, b: Any) -> bool:
    """Compare two values; ``TypeError`` if they cannot be compared."""
    if isinstance(op, ast.In | ast.NotIn):
        return _contains(b, a) == isinstance(op, ast.In)
    if isinstance(op, ast.Eq | ast.NotEq):
        return _equal(a, b) == isinstance(op, ast.Eq)
    if isinstance(op, ast.Is | ast.IsNot):
        return (a is b) == isinstance(op, ast.Is)
    if _class(a) != _class(b) or not isinstance(a, int | float | Decimal | str | bytes):
        raise TypeError
    return _ORDERS[type(op)](*_comparable(a, b))


def _equal(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if _class(a) != _class(b):
        raise TypeError
    a, b = _comparable(a, b)
    return bool(a == b)


def _contains(container: Any, item: Any) -> bool:
    if isinstance(container, str) and isinstance(item, str):
        return item in container
    if isinstance(container, tuple | list):
        return any(_equal(item, one) for one in container)
    if isinstance(container, (dict, *_WITH_FIELDS)) and isinstance(item, str):
        return item in container
    raise TypeError
