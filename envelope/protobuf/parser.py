"""The messages of a Protobuf schema, from its text (https://protobuf.dev/reference/protobuf/proto3-spec/).

It reads what converters write and registries store: messages, enumerations, maps and the options of fields. Services
and extensions are skipped.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""  # blanks and comments
    r"""|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\.?[^\W\d][\w.]*|[-+]?\d[\w.+-]*|.)""",
    re.DOTALL,
)
_LABELS = frozenset({"optional", "required", "repeated"})
_CLOSING = {"{": "}", "[": "]", "(": ")", "<": ">"}
_PARAMETER = re.compile(r"(key|value)\s*:\s*(\"(?:[^\"\\]|\\.)*\")")


@dataclass(frozen=True, slots=True)
class ParsedField:
    """A field of a message in the text of a schema.

    Attributes:
        name: its name.
        number: its number.
        type: the name of its type; the value's of a map.
        label: ``optional``, ``required``, ``repeated`` or empty.
        key: the type of a map's keys; empty for other fields.
        choice: whether it is one of a ``oneof``.
        parameters: those of Confluent's option ``confluent.field_meta``.
    """

    name: str
    number: int
    type: str
    label: str = ""
    key: str = ""
    choice: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ParsedMessage:
    """A message with its fields, and its definitions by name: messages, and the names of enumerations by number."""

    name: str
    fields: list[ParsedField] = field(default_factory=list)
    messages: "dict[str, ParsedMessage]" = field(default_factory=dict)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)


def parsed_file(text: str) -> ParsedMessage:
    """Return the messages and enumerations of a file, as a message whose name is the package.

    Raises:
        ValueError: the text is not a Protobuf schema.
    """
    tokens = _Tokens(text)
    package, found = "", ParsedMessage("")
    while (word := tokens.next()) is not None:
        match word:
            case "package":
                package = "".join(tokens.until(";"))  # converters do not check it, so it may have any characters
            case "message" | "enum":
                _definition(tokens, word, found)
            case ";":
                pass
            case _:
                tokens.skip()
    found.name = package
    return found


class _Tokens:
    def __init__(self, text: str) -> None:
        self._found = [match[1] for match in _TOKEN.finditer(text) if match[1] is not None]
        self._place = 0

    def next(self) -> str | None:
        """Return the next token; ``None`` at the end."""
        if self._place == len(self._found):
            return None
        self._place += 1
        return self._found[self._place - 1]

    def required(self) -> str:
        token = self.next()
        if token is None:
            raise ValueError("the text of the Protobuf schema ends unexpectedly")
        return token

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if (found := self.required()) != token:
                raise ValueError(f"the Protobuf schema has {found!r} where {token!r} is expected")

    def until(self, end: str) -> Iterator[str]:
        """Yield the tokens before the next ``end`` outside of brackets, which is consumed."""
        while (token := self.required()) != end:
            yield token
            if token in _CLOSING:
                closing = _CLOSING[token]
                yield from self.until(closing)
                yield closing

    def skip(self) -> None:
        """Skip a statement: it ends with a semicolon or a block."""
        while (token := self.required()) != ";":
            if token == "{":
                list(self.until("}"))
                return
            if token in _CLOSING:
                list(self.until(_CLOSING[token]))


def _definition(tokens: _Tokens, kind: str, inside: ParsedMessage) -> None:
    name = tokens.required()
    tokens.expect("{")
    if kind == "message":
        inside.messages[name] = message = ParsedMessage(name)
        _body(tokens, message)
    else:
        inside.enums[name] = _enum(tokens)


def _enum(tokens: _Tokens) -> dict[int, str]:
    found: dict[int, str] = {}
    while (name := tokens.required()) != "}":
        if name in {"option", "reserved"}:
            tokens.skip()
        elif name != ";":
            tokens.expect("=")
            number, *_ = tokens.until(";")
            found.setdefault(int(number, 0), name)
    return found


def _body(tokens: _Tokens, message: ParsedMessage, *, choice: bool = False) -> None:
    while (word := tokens.required()) != "}":
        match word:
            case ";":
                pass
            case "message" | "enum":
                _definition(tokens, word, message)
            case "oneof":
                tokens.required()
                tokens.expect("{")
                _body(tokens, message, choice=True)
            case "option" | "reserved" | "extensions" | "extend":
                tokens.skip()
            case _:
                message.fields.append(_field(tokens, word, choice=choice))


def _field(tokens: _Tokens, word: str, *, choice: bool) -> ParsedField:
    label = word if word in _LABELS else ""
    kind, key = tokens.required() if label else word, ""
    name = tokens.required()
    if kind == "map" and name == "<":
        key = tokens.required()
        tokens.expect(",")
        kind = tokens.required()
        tokens.expect(">")
        name = tokens.required()
    tokens.expect("=")
    number, *options = tokens.until(";")
    return ParsedField(name, int(number, 0), kind, label, key, choice, _parameters(options))


def _parameters(options: list[str]) -> dict[str, str]:
    """Return the parameters of ``(confluent.field_meta) = { params: [{ key: "scale", value: "2" }, …] }``."""
    found, pair = {}, {}
    for part, text in _PARAMETER.findall(" ".join(options)) if "confluent.field_meta" in options else ():
        pair[part] = text[1:-1]
        if len(pair) == 2:
            found[pair["key"]], pair = pair["value"], {}
    return found
