r"""Java's regular expressions in Python: Debezium's properties hold patterns written for ``java.util.regex``.

Most patterns mean the same in both languages. Other syntax is translated, or is an error if Python has no equivalent.
As in Java without further flags, case is ignored for ASCII letters only, and ``\w``, ``\d``, ``\s`` are ASCII.
"""

import functools
import re
from collections.abc import Iterable

from rowtide.topics.java_character_classes import family

_LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_NOT_LINE_END = f"[^{_LINE_ENDS}]"
_ANY = "(?s:.)"
_HORIZONTAL = " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000"
_VERTICAL = "\\n\\x0b\\f\\r\\x85\\u2028\\u2029"
_SAME_IN_BOTH = frozenset("dDsSwW")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_NO_WIDTH = frozenset({"^", "$", "\\A", "\\Z", "\\b", "\\B"})
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?")


class InvalidPatternError(ValueError):
    """A pattern is invalid, or has no equivalent in Python; the message has the pattern and the reason."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"invalid regular expression {pattern!r}: {reason}")
        self.pattern = pattern
        self.reason = reason


@functools.lru_cache(maxsize=1024)
def compile_java(pattern: str, *, ignore_case: bool = False, dot_all: bool = False) -> re.Pattern[str]:
    """Compile a Java regular expression.

    Args:
        pattern: in the syntax of ``java.util.regex.Pattern``.
        ignore_case: ``Pattern.CASE_INSENSITIVE``: ASCII letters match in either case.
        dot_all: ``Pattern.DOTALL``: a dot matches line ends too.

    Raises:
        InvalidPatternError: the pattern is invalid in Java, or has no equivalent in Python.
    """
    flags = re.ASCII | (re.IGNORECASE if ignore_case else re.NOFLAG)
    translated = _Translator(pattern, ignore_case=ignore_case, dot_all=dot_all).translate()
    try:
        return re.compile(translated, flags)
    except (re.error, OverflowError) as error:
        raise InvalidPatternError(pattern, str(error)) from None


class _Translator:
    """Translates a pattern in one pass; every method consumes what it translates."""

    def __init__(self, pattern: str, *, ignore_case: bool, dot_all: bool) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups = 0
        self.ignore_case = ignore_case
        self.dot_all = dot_all

    def translate(self) -> str:
        text = self.alternatives()
        if self.at < len(self.pattern):
            raise self.error("unmatched closing ')'")
        return text

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

    def alternatives(self) -> str:
        """Translate up to a closing parenthesis or the end; a flag such as ``(?i)`` applies up to there."""
        out: list[str] = []
        flags: list[str] = []
        outside = self.ignore_case, self.dot_all
        while self.at < len(self.pattern) and not self.peek(")"):
            if self.peek("|"):
                out.append(")" * len(flags) + self.take() + "".join(flags))
            elif match := re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]+)?\)").match(self.pattern, self.at):
                flag = self.flags(match[1], (match[2] or "")[1:])
                self.at = match.end()
                if flag:
                    flags.append(flag)
                    out.append(flag)
            else:
                out.append(self.atom())
        self.ignore_case, self.dot_all = outside
        return "".join(out) + ")" * len(flags)

    def flags(self, on: str, off: str) -> str:
        """The start of Python's group for Java's flags; ``""`` if they only affect the dot."""
        for letter in on + off:
            if letter not in "imsuU":
                raise self.error(f"the flag ({letter}) is not supported")
        self.dot_all = (self.dot_all or "s" in on) and "s" not in off
        self.ignore_case = (self.ignore_case or "i" in on) and "i" not in off
        python_on = "".join(sorted({letter.lower() for letter in on} - {"s"}))
        python_off = "".join(sorted(set(off) & set("im")))
        return f"(?{python_on}{'-' if python_off else ''}{python_off}:" if python_on or python_off else ""

    def atom(self) -> str:
        char = self.take()
        if char == "\\":
            text = self.escape()
        elif char == "(":
            text = self.group()
        elif char == "[":
            text = self.char_class()
        elif char == ".":
            text = _ANY if self.dot_all else _NOT_LINE_END
        elif char in "*+?{":
            if char == "{":
                raise self.error("illegal repetition")
            raise self.error(f"dangling meta character '{char}'")
        elif char in "^$":
            text = char
        else:
            text = re.escape(char)
        quantifier = self.quantifier()
        # Java allows a quantifier after a zero-width assertion, Python only after a group.
        return f"(?:{text}){quantifier}" if quantifier and text in _NO_WIDTH else text + quantifier

    def quantifier(self) -> str:
        match = _QUANTIFIER.match(self.pattern, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def group(self) -> str:
        outside = self.ignore_case, self.dot_all
        if match := re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.at):
            self.groups += 1
            opening = f"(?P<{match[1]}>"
            self.at = match.end()
        elif match := re.compile(r"\?(?:<?[=!]|[:>])").match(self.pattern, self.at):
            opening = f"({match[0]}"
            self.at = match.end()
        elif match := re.compile(r"\?([a-zA-Z]*)(-[a-zA-Z]+)?:").match(self.pattern, self.at):
            opening = self.flags(match[1], (match[2] or "")[1:]) or "(?:"
            self.at = match.end()
        elif self.peek("?"):
            raise self.error("unknown group type")
        else:
            self.groups += 1
            opening = "("
        inside = self.alternatives()
        if not self.peek(")"):
            raise self.error("unclosed group")
        self.take()
        self.ignore_case, self.dot_all = outside
        return f"{opening}{inside})"

    def escape(self) -> str:
        """Translate what follows a backslash outside a character class."""
        char = self.take()
        simple = {
            "A": "\\A",
            "b": "\\b",
            "B": "\\B",
            "z": "\\Z",
            "Z": f"(?=(?:\\r\\n|[{_LINE_ENDS}])?\\Z)",
            "R": f"(?:\\r\\n|[{_VERTICAL}])",
            "h": f"[{_HORIZONTAL}]",
            "H": f"[^{_HORIZONTAL}]",
            "v": f"[{_VERTICAL}]",
            "V": f"[^{_VERTICAL}]",
        }
        if char in simple:
            return simple[char]
        if char in _SAME_IN_BOTH:
            return f"\\{char}"
        if char == "Q":
            return self.quoted()
        if char == "k":
            if self.take() != "<":
                raise self.error("\\k is not followed by '<' for a named group")
            return f"(?P={self.take_until('>', 'group name')})"
        if char in "123456789":
            number = int(char)
            while self.at < len(self.pattern) and self.pattern[self.at] in "0123456789":
                longer = number * 10 + int(self.pattern[self.at])
                if longer > self.groups:
                    break
                number = longer
                self.at += 1
            return f"(?:\\{number})"
        if char in "pP":
            return f"[{self.property_class(negated=char == 'P')}]"
        return re.escape(self.literal(char))

    def quoted(self) -> str:
        end = self.pattern.find("\\E", self.at)
        text = self.pattern[self.at :] if end < 0 else self.pattern[self.at : end]
        self.at = len(self.pattern) if end < 0 else end + 2
        # A quantifier after a quotation applies to its last character only.
        return re.escape(text)

    def literal(self, char: str) -> str:
        """The character of an escape sequence, inside or outside a class."""
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
        r"""The content of a Python class for ``\p{name}``."""
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


class Replacement:
    r"""A replacement for ``java.util.regex.Matcher.replaceAll``: ``$1``, ``${name}``, ``\`` escapes."""

    __slots__ = ("_parts", "pattern", "text")

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        """Parse the replacement for a pattern.

        Raises:
            ValueError: a reference is incomplete, or the pattern does not have the group.
        """
        self.text = text
        self.pattern = pattern
        self._parts = tuple(self._parse())

    def _parse(self) -> Iterable[str | int]:
        at, text = 0, self.text
        while at < len(text):
            char = text[at]
            at += 1
            if char == "\\":
                if at == len(text):
                    raise ValueError(
                        f"the replacement {text!r} ends in a backslash: the character to escape is missing"
                    )
                yield text[at]
                at += 1
            elif char == "$":
                match = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}|([0-9])").match(text, at)
                if match is None:
                    raise ValueError(
                        f"illegal group reference in {text!r}: '$' needs a number or a {{name}}, or write '\\$'"
                    )
                at = match.end()
                if match[1]:
                    yield self._named(match[1])
                    continue
                number = int(match[2])
                while at < len(text) and text[at].isdecimal() and number * 10 + int(text[at]) <= self.pattern.groups:
                    number = number * 10 + int(text[at])
                    at += 1
                if number > self.pattern.groups:
                    raise ValueError(
                        f"the replacement {text!r} refers to group {number}, the pattern has {self.pattern.groups}"
                    )
                yield number
            else:
                yield char

    def _named(self, name: str) -> int:
        try:
            return self.pattern.groupindex[name]
        except KeyError:
            raise ValueError(
                f"the replacement {self.text!r} refers to group '{name}', which the pattern does not have"
            ) from None

    def expand(self, match: re.Match[str]) -> str:
        """The text for a match; a group that did not take part is empty."""
        return "".join((match[part] or "") if isinstance(part, int) else part for part in self._parts)

    def replace_all(self, text: str) -> str:
        """``Matcher.replaceAll``."""
        return self.pattern.sub(self.expand, text)

    def replace_first(self, text: str) -> str:
        """``Matcher.replaceFirst``."""
        return self.pattern.sub(self.expand, text, count=1)
