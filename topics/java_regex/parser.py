r"""Parses Java's regular expressions (``java.util.regex``) to parts that have Python's syntax.

Most expressions mean the same in both languages. Other syntax is translated, or is an error if Python has none for it.
As in Java without further flags, case is ignored only for ASCII letters, and ``\w``, ``\d``, ``\s`` are ASCII.
"""

import re
from collections.abc import Iterable

from rowtide.topics.java_regex.character_classes import family
from rowtide.topics.java_regex.parts import Chain, Choice, Group, Look, Part, Piece, Reference, Repetition

_LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_NOT_LINE_END = f"[^{_LINE_ENDS}]"
_ANY = "(?s:.)"
_HORIZONTAL = " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000"
_VERTICAL = "\\n\\x0b\\f\\r\\x85\\u2028\\u2029"
_SAME_IN_BOTH = frozenset("dDsSwW")
_ASSERTIONS = {
    "A": "\\A",
    "b": "\\b",
    "B": "\\B",
    "z": "\\Z",
    "Z": f"(?=(?:\\r\\n|[{_LINE_ENDS}])?\\Z)",
}
_CLASSES = {
    "h": f"[{_HORIZONTAL}]",
    "H": f"[^{_HORIZONTAL}]",
    "v": f"[{_VERTICAL}]",
    "V": f"[^{_VERTICAL}]",
    **{char: f"\\{char}" for char in _SAME_IN_BOTH},
}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_QUANTIFIER = re.compile(r"([*+?]|\{(\d+)(?:,(\d*))?\})([+?]?)")
_TIMES = {"*": ("0", ""), "+": ("1", ""), "?": ("0", "1")}
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]+)?\)")
_NAME = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_DEEPEST = 100
LONGEST = 1 << 20
"""The longest expression in Python's syntax, in characters."""


class InvalidPatternError(ValueError):
    """A pattern is invalid, or has no equivalent in Python; the message has the pattern and the reason."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"invalid regular expression {pattern!r:.300}: {reason}")
        self.pattern = pattern
        self.reason = reason


def parse_java(pattern: str, *, ignore_case: bool = False, dot_all: bool = False, longest: int = LONGEST) -> Part:
    """Parse a Java regular expression.

    Args:
        pattern: in the syntax of ``java.util.regex.Pattern``.
        ignore_case: ``Pattern.CASE_INSENSITIVE``; the text of the parts must be compiled with ``re.IGNORECASE``.
        dot_all: ``Pattern.DOTALL``.
        longest: the longest text of the parts, in characters.

    Raises:
        InvalidPatternError: the pattern is invalid in Java, has no equivalent in Python, or is too long.
    """
    return _Parser(pattern, ignore_case=ignore_case, dot_all=dot_all, longest=longest).parse()


class _Parser:
    """Parses a pattern in one pass; every method consumes what it parses."""

    def __init__(self, pattern: str, *, ignore_case: bool, dot_all: bool, longest: int) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups = 0
        self.depth = 0
        self.left = longest
        self.ignored = frozenset("i") if ignore_case else frozenset[str]()
        self.flags = self.ignored
        self.dot_all = dot_all

    @property
    def ignore_case(self) -> bool:
        return "i" in self.flags

    def parse(self) -> Part:
        part = self.alternatives()
        if self.at < len(self.pattern):
            raise self.error("unmatched closing ')'")
        return part

    def error(self, reason: str) -> InvalidPatternError:
        return InvalidPatternError(self.pattern, f"{reason} near index {self.at}")

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self, count: int = 1) -> str:
        if self.at + count > len(self.pattern):
            raise self.error("unexpected end")
        self.at += count
        return self.pattern[self.at - count : self.at]

    def take_until(self, end: str, what: str) -> str:
        found = self.pattern.find(end, self.at)
        if found < 0:
            raise self.error(f"unclosed {what}")
        text = self.pattern[self.at : found]
        self.at = found + len(end)
        return text

    def alternatives(self) -> Part:
        """Parse up to a closing parenthesis or the end; a flag such as ``(?i)`` applies up to there."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} nested groups")
        outside = self.flags, self.dot_all
        chains: list[list[Part]] = [[]]
        while self.at < len(self.pattern) and not self.peek(")"):
            if self.peek("|"):
                self.take()
                chains.append([])
            elif match := _FLAGS.match(self.pattern, self.at):
                self.set_flags(match[1], (match[2] or "")[1:])
                self.at = match.end()
            else:
                chains[-1] += self.atom()
        self.flags, self.dot_all = outside
        self.depth -= 1
        return Chain(chains[0]) if len(chains) == 1 else Choice([Chain(chain) for chain in chains])

    def set_flags(self, on: str, off: str) -> None:
        for letter in on + off:
            if letter not in "imsuU":
                raise self.error(f"the flag ({letter}) is not supported")
        self.dot_all = (self.dot_all or "s" in on) and "s" not in off
        self.flags = (self.flags | (set(on.lower()) - {"s"})) - (set(off) & set("im"))

    def piece(self, text: str, width: int = 1, literal: str | None = None) -> Piece:
        """Return a piece with the current flags."""
        return Piece(self.flagged(text), width, literal)

    def flagged(self, text: str) -> str:
        on, off = "".join(sorted(self.flags - self.ignored)), "".join(sorted(self.ignored - self.flags))
        text = f"(?{on}{'-' if off else ''}{off}:{text})" if on or off else text
        self.left -= len(text)
        if self.left < 0:
            raise self.error("it is too long")
        return text

    def characters(self, text: str) -> list[Part]:
        return [self.piece(re.escape(char), literal=char) for char in text]

    def atom(self) -> list[Part]:
        """Parse the operand of a quantifier, with the quantifier. A quotation has several parts, or none."""
        char = self.take()
        if char == "\\":
            parts = self.escape()
        elif char == "(":
            parts = [self.group()]
        elif char == "[":
            parts = [self.piece(self.char_class())]
        elif char == ".":
            parts = [self.piece(_ANY if self.dot_all else _NOT_LINE_END)]
        elif char in "*+?{":
            if char == "{":
                raise self.error("illegal repetition")
            raise self.error(f"dangling meta character '{char}'")
        elif char in "^$":
            parts = [self.piece(char, width=0)]
        else:
            parts = self.characters(char)
        match = _QUANTIFIER.match(self.pattern, self.at)
        if match is not None and parts:
            self.at = match.end()
            parts[-1] = self.repetition(parts[-1], match)
        return parts

    def repetition(self, part: Part, match: re.Match[str]) -> Part:
        # Java allows a quantifier after a zero-width assertion, Python only after a group.
        repeated = part if part.width or not isinstance(part, Piece) else Group(part, None, "(?:")
        low, high = _TIMES.get(match[1], (match[2], match[3] if match[3] is not None else match[2]))
        found = Repetition(repeated, int(low), int(high) if high else None, match[0])
        return Look(found, found.text, keeps=True) if match[4] == "+" else found

    def group(self) -> Part:
        outside = self.flags, self.dot_all
        number: int | None = None
        look = ""
        opening = "(?:"
        if match := _NAME.match(self.pattern, self.at):
            self.groups += 1
            opening, number = f"(?P<{match[1]}>", self.groups
            self.at = match.end()
        elif match := re.compile(r"\?(?:<?[=!]|>)").match(self.pattern, self.at):
            opening = f"({match[0]}"
            look = match[0]
            self.at = match.end()
        elif match := re.compile(r"\?([a-zA-Z]*)(-[a-zA-Z]+)?:").match(self.pattern, self.at):
            self.set_flags(match[1], (match[2] or "")[1:])
            self.at = match.end()
        elif self.peek("?"):
            raise self.error("unknown group type")
        else:
            self.groups += 1
            opening, number = "(", self.groups
        inside = self.alternatives()
        if not self.peek(")"):
            raise self.error("unclosed group")
        self.take()
        self.flags, self.dot_all = outside
        group = Group(inside, number, opening)
        if not look:
            return group
        return Look(inside, group.text, behind="<" in look, negated="!" in look, keeps=">" in look)

    def escape(self) -> list[Part]:
        """Parse the text after a backslash outside a character class."""
        char = self.take()
        if char in _ASSERTIONS:
            return [self.piece(_ASSERTIONS[char], width=0)]
        if char in _CLASSES:
            return [self.piece(_CLASSES[char])]
        if char == "R":
            choices = [Chain(self.characters("\r\n")), Chain([self.piece(f"[{_VERTICAL}]")])]
            return [Group(Choice(choices), None, "(?:")]
        if char == "Q":
            return self.characters(self.quoted())
        if char == "k":
            if self.take() != "<":
                raise self.error("\\k is not followed by '<' for a named group")
            return [Reference(self.flagged(f"(?P={self.take_until('>', 'group name')})"))]
        if char in "123456789":
            number = int(char)
            while self.at < len(self.pattern) and self.pattern[self.at] in "0123456789":
                longer = number * 10 + int(self.pattern[self.at])
                if longer > self.groups:
                    break
                number = longer
                self.at += 1
            return [Reference(self.flagged(f"(?:\\{number})"))]
        if char in "pP":
            return [self.piece(f"[{self.property_class(negated=char == 'P')}]")]
        return self.characters(self.literal(char))

    def quoted(self) -> str:
        end = self.pattern.find("\\E", self.at)
        text = self.pattern[self.at :] if end < 0 else self.pattern[self.at : end]
        self.at = len(self.pattern) if end < 0 else end + 2
        return text

    def literal(self, char: str) -> str:
        """Return the character of an escape sequence, inside or outside a class."""
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "c":
            return chr(ord(self.take()) ^ 64)
        if char == "0":
            if match := re.compile("[0-3]?[0-7]{1,2}").match(self.pattern, self.at):
                self.at = match.end()
                return chr(int(match[0], 8))
            raise self.error("illegal octal escape sequence")
        if char == "x" and self.peek("{"):
            self.take()
            return self.code_point(self.take_until("}", "hexadecimal escape sequence"))
        if char in "xu":
            return self.code_point(self.take(2 if char == "x" else 4))
        if char.isascii() and char.isalpha():
            raise self.error(f"illegal or unsupported escape sequence \\{char}")
        return char

    def code_point(self, digits: str) -> str:
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise self.error("illegal hexadecimal escape sequence") from None

    def property_class(self, *, negated: bool) -> str:
        r"""Return the content of a Python class for ``\p{name}``."""
        char = self.take()
        name = self.take_until("}", "character class name") if char == "{" else char
        inside = family(name, negated=negated, ignore_case=self.ignore_case)
        if inside is None:
            raise self.error(f"the character class \\p{{{name}}} is not supported; use a category such as \\p{{L}}")
        return inside

    def char_class(self) -> str:
        """Translate a class with unions and intersections to an expression that matches one character."""
        negated = self.peek("^")
        if negated:
            self.take()
        parts: list[str] = []  # operands of an intersection
        items: list[str] = []  # content of a Python class
        nested: list[str] = []  # complete expressions
        first = True
        while True:
            if self.at >= len(self.pattern):
                raise self.error("unclosed character class")
            char = self.take()
            if char == "]" and not first:
                break
            if char == "[":
                nested.append(self.char_class())
            elif char == "&" and self.peek("&"):
                self.take()
                if items or nested:
                    parts.append(_union(items, nested))
                items, nested = [], []
            else:
                items.append(self.class_item(char))
            first = False
        if not parts and not nested:
            return f"[{'^' if negated else ''}{''.join(items)}]" if items else _union(items, nested)
        if items or nested:
            parts.append(_union(items, nested))
        whole = "".join(f"(?={part})" for part in parts[:-1]) + parts[-1]
        return f"(?:(?!{whole}){_ANY})" if negated else f"(?:{whole})"

    def class_item(self, char: str) -> str:
        """Translate one character, range or predefined class."""
        if char == "\\":
            escaped = self.take()
            if escaped in _SAME_IN_BOTH:
                return f"\\{escaped}"
            if escaped in "hv":
                return _HORIZONTAL if escaped == "h" else _VERTICAL
            if escaped in "pP":
                return self.property_class(negated=escaped == "P")
            if escaped == "Q":
                return "".join(_class_char(one) for one in self.take_until("\\E", "quotation"))
            low = self.literal(escaped)
        else:
            low = char
        if not self.peek("-") or self.pattern[self.at + 1 : self.at + 2] in ("]", "[", ""):
            return _class_char(low)
        self.take()
        high = self.take()
        if high == "\\":
            high = self.literal(self.take())
        if high < low:
            raise self.error("illegal character range")
        return f"{_class_char(low)}-{_class_char(high)}"


def _class_char(char: str) -> str:
    return f"\\{char}" if char in "\\]^-[&~|" else char


def _union(items: Iterable[str], nested: Iterable[str]) -> str:
    inside = "".join(items)
    choices = [*([f"[{inside}]"] if inside else []), *nested]
    return choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})"
