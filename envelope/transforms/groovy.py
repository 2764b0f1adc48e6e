"""Translates expressions in Groovy or JavaScript, as in Debezium's scripting transforms, to Python's syntax.

It is used only for messages: the user copies the translation into the configuration.
"""

import ast
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple


class NotTranslatableError(ValueError):
    """A part of an expression cannot be translated; the message names it."""


class _Token(NamedTuple):
    kind: str
    text: str


_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>\d+(?:\.\d+)?[lLgGdDfFiI]?(?![\w.]*\w))
    |(?P<text>'(?:\\.|[^'\\\n])*')
    |(?P<template>"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<operator>===|!==|==~|=~|==|!=|<=|>=|&&|\|\||\?\.|\?\?|\?:|[-+*/%<>!?:.,()\[\]])""",
    re.VERBOSE,
)
_SLASHY = re.compile(r"/((?:\\/|[^/\n])+)/")
_DEEPEST = 40
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_GETTERS = frozenset(
    {"get", "getStruct", "getString", "getInt8", "getInt16", "getInt32", "getInt64", "getFloat32", "getFloat64",
     "getBoolean", "getBytes", "getArray", "getMap", "getWithoutDefault"}
)  # fmt: skip
_METHODS: Mapping[str, str] = {
    "startsWith": "startswith", "endsWith": "endswith", "toLowerCase": "lower", "toUpperCase": "upper", "trim": "strip",
    "replace": "replace",
}  # fmt: skip
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("==", "!=", "===", "!==", "=~", "==~"),
    ("<", "<=", ">", ">=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", **{one: one for one in "\\'\"$`"}}
_COMPARISONS: Mapping[str, type[ast.cmpop]] = {
    "==": ast.Eq, "===": ast.Eq, "!=": ast.NotEq, "!==": ast.NotEq,
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "in": ast.In,
}  # fmt: skip
_ARITHMETIC: Mapping[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "%": ast.Mod,
}  # fmt: skip


def translated(text: str) -> str:
    """Translate an expression in Groovy or JavaScript.

    Raises:
        NotTranslatableError: a part of it has no equivalent.
    """
    body = text.strip().removesuffix(";").strip()
    body = re.sub(r"^return\b\s*", "", body)
    parser = _Parser(_tokens(body))
    found = parser.expression()
    if parser.peek().kind != "end":
        raise NotTranslatableError(f"{parser.peek().text!r} cannot be translated")
    return ast.unparse(ast.fix_missing_locations(ast.Expression(found)))


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        after = found[-1] if found else _Token("operator", "(")
        slashy = _SLASHY.match(text, at) if after.kind == "operator" and after.text not in (")", "]") else None
        if slashy is not None:
            found.append(_Token("pattern", slashy[1].replace("\\/", "/")))
            at = slashy.end()
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotTranslatableError(f"{text[at : at + 20]!r} cannot be translated")
        if match.lastgroup != "space":
            found.append(_Token(match.lastgroup or "", match[0]))
        at = match.end()
    return [*found, _Token("end", "the end of the expression")]


def _content(inner: str) -> str:
    """Return the characters of a string literal, without its quotes."""

    def character(escape: re.Match[str]) -> str:
        found = escape[1]
        if found[0] == "u" and len(found) == 5:
            return chr(int(found[1:], 16))
        if found not in _ESCAPES:
            raise NotTranslatableError(f"\\{found} in a string cannot be translated")
        return _ESCAPES[found]

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, inner, flags=re.DOTALL)


def _number(text: str) -> int | float:
    if text != "0" and re.match(r"0\d", text):
        raise NotTranslatableError(f"the octal number {text} cannot be translated")
    return float(text) if "." in text else int(text)


def _compare(left: ast.expr, op: type[ast.cmpop], right: ast.expr) -> ast.expr:
    if op in (ast.Eq, ast.NotEq) and isinstance(right, ast.Constant) and right.value is None:
        op = ast.Is if op is ast.Eq else ast.IsNot
    return ast.Compare(left, [op()], [right])


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _Parser:
    """A recursive descent parser of the tokens of an expression; each method returns Python's syntax tree."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def peek(self) -> _Token:
        """Return the next token."""
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self.peek()
        self._at += token.kind != "end"
        return token

    def _accept(self, *texts: str) -> str | None:
        token = self.peek()
        if token.text in texts and token.kind in ("operator", "name"):
            self._at += 1
            return token.text
        return None

    def _expect(self, text: str) -> None:
        if self._accept(text) is None:
            raise NotTranslatableError(f"{self.peek().text!r} cannot be translated: {text} is expected there")

    def expression(self) -> ast.expr:
        """Parse a whole expression."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotTranslatableError("it is too deeply nested")
        chooses = self._logic("||", ast.Or, lambda: self._logic("&&", ast.And, lambda: self._binary(0)))
        if self._accept("?:"):
            chooses = ast.BoolOp(ast.Or(), [chooses, self.expression()])
        elif self._accept("??"):
            chooses = ast.IfExp(_compare(chooses, ast.NotEq, ast.Constant(None)), chooses, self.expression())
        elif self._accept("?"):
            yes = self.expression()
            self._expect(":")
            chooses = ast.IfExp(chooses, yes, self.expression())
        self._depth -= 1
        return chooses

    def _logic(self, text: str, op: type[ast.boolop], operand: Callable[[], ast.expr]) -> ast.expr:
        values = [operand()]
        while self._accept(text):
            values.append(operand())
        return values[0] if len(values) == 1 else ast.BoolOp(op(), values)

    def _binary(self, level: int) -> ast.expr:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (text := self._accept(*_LEVELS[level])) is not None:
            right = self._binary(level + 1)
            if text in ("=~", "==~"):
                left = _call("search" if text == "=~" else "fullmatch", right, left)
            elif text in _COMPARISONS:
                left = _compare(left, _COMPARISONS[text], right)
            else:
                left = ast.BinOp(left, _ARITHMETIC[text](), right)
        return left

    def _unary(self) -> ast.expr:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NotTranslatableError("it is too deeply nested")
        if self._accept("!"):
            found: ast.expr = ast.UnaryOp(ast.Not(), self._unary())
        elif self._accept("-"):
            found = ast.UnaryOp(ast.USub(), self._unary())
        else:
            found = self._postfix()
        self._depth -= 1
        return found

    def _postfix(self) -> ast.expr:
        found = self._primary()
        while (text := self._accept(".", "?.", "[", "(")) is not None:
            if text == "[":
                index = self.expression()
                self._expect("]")
                found = ast.Subscript(found, index, ast.Load())
                continue
            if text == "(":
                raise NotTranslatableError(f"the call of {ast.unparse(found)} cannot be translated")
            name = self._next()
            if name.kind == "text":
                name = _Token("name", _content(name.text[1:-1]))
            if name.kind != "name":
                raise NotTranslatableError(f"{name.text!r} after a dot cannot be translated")
            if self._accept("("):
                found = self._method(found, name.text, self._arguments(), safe=text == "?.")
            else:
                found = self._field(found, name.text, safe=text == "?.")
        return found

    @staticmethod
    def _field(of: ast.expr, name: str, *, safe: bool) -> ast.expr:
        if not safe:
            if not name.isidentifier():
                return ast.Subscript(of, ast.Constant(name), ast.Load())
            return ast.Attribute(of, name, ast.Load())
        if isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "get":
            return _call("get", *of.args, ast.Constant(name))
        return _call("get", of, ast.Constant(name))

    def _arguments(self) -> list[ast.expr]:
        found: list[ast.expr] = []
        while not self._accept(")"):
            found.append(self.expression())
            if not self._accept(","):
                self._expect(")")
                break
        return found

    def _method(self, of: ast.expr, name: str, given: list[ast.expr], *, safe: bool) -> ast.expr:
        match name, given:
            case "equals", [other]:
                return _compare(of, ast.Eq, other)
            case "equalsIgnoreCase", [other]:
                lowered = [ast.Call(ast.Attribute(one, "lower", ast.Load()), [], []) for one in (of, other)]
                return _compare(lowered[0], ast.Eq, lowered[1])
            case "contains" | "includes" | "containsKey", [item]:
                return ast.Compare(item, [ast.In()], [of])
            case "matches", [pattern]:
                return _call("fullmatch", pattern, of)
            case "length" | "size", []:
                return _call("len", of)
            case "isEmpty", []:
                return _compare(_call("len", of), ast.Eq, ast.Constant(0))
            case "toString", []:
                return _call("str", of)
            case "concat", [other]:
                return ast.BinOp(of, ast.Add(), other)
            case "substring", [start]:
                return ast.Subscript(of, ast.Slice(start), ast.Load())
            case "substring", [start, end]:
                return ast.Subscript(of, ast.Slice(start, end), ast.Load())
            case (("name" | "version" | "type"), []):
                return ast.Attribute(of, name, ast.Load())
            case _, [ast.Constant(value=str(field))] if name in _GETTERS:
                return self._field(of, field, safe=safe)
        if name in _METHODS and not safe:
            return ast.Call(ast.Attribute(of, _METHODS[name], ast.Load()), given, [])
        raise NotTranslatableError(f"the method {name} of {ast.unparse(of)} cannot be translated")

    def _primary(self) -> ast.expr:
        token = self._next()
        match token.kind:
            case "number":
                return ast.Constant(_number(token.text.rstrip("lLgGdDfFiI")))
            case "text":
                return ast.Constant(_content(token.text[1:-1]))
            case "pattern":
                return ast.Constant(token.text)
            case "template":
                return _template(token.text)
            case "name":
                if token.text in _CONSTANTS:
                    return ast.Constant(_CONSTANTS[token.text])
                return ast.Name(token.text, ast.Load())
        if token == ("operator", "("):
            found = self.expression()
            self._expect(")")
            return found
        if token == ("operator", "["):
            items: list[ast.expr] = []
            while not self._accept("]"):
                items.append(self.expression())
                if not self._accept(","):
                    self._expect("]")
                    break
            return ast.Tuple(items, ast.Load())
        raise NotTranslatableError(f"{token.text!r} cannot be translated")


def _template(literal: str) -> ast.expr:
    """Return a string with ``${…}`` or ``$name``, as an f-string."""
    parts: list[ast.expr] = []
    for text, braces, path in re.findall(
        r"((?:\\.|[^$\\]|\$(?![{A-Za-z_]))+)|\$\{([^{}]*)\}|\$([A-Za-z_][\w.]*)", literal[1:-1]
    ):
        if text:
            parts.append(ast.Constant(_content(text)))
        else:
            parser = _Parser(_tokens(braces or path))
            parts.append(ast.FormattedValue(parser.expression(), -1))
            if parser.peek().kind != "end":
                raise NotTranslatableError(f"{literal} cannot be translated")
    if all(isinstance(part, ast.Constant) for part in parts):
        return ast.Constant("".join(str(part.value) for part in parts if isinstance(part, ast.Constant)))
    return ast.JoinedStr(parts)
