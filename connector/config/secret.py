"""Keeps secrets out of logs: a type for passwords, and the names of properties whose values are masked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.topics.java_regex import compile_java

MASK = "********"

DEFAULT_SANITIZE_PATTERN = (
    r".*secret$|.*password$|.*sasl\.jaas\.config$|.*basic\.auth\.user\.info|.*registry\.auth\.client-secret"
    r"|.*credentials\.json$|.*connectionstring$|.*connection\.string$"
)
"""Debezium's default of ``custom.sanitize.pattern``."""

_ALWAYS = re.compile(
    r".*(?:secret|passw(?:or)?d|passphrase|token|credentials|private\.key|ssl\.key\.pem|keystore\.key|with\.salt)(?:\..*)?"
    r"|rowtide\.sink\.http\.header\..*|.*(?:sasl\.jaas\.config|sasl\.oauthbearer\.config|auth\.user\.info|salt\..*)",
    re.IGNORECASE | re.DOTALL,
)
_SALT = re.compile(r"(?<=\.with\.salt\.).*", re.DOTALL)


class Secret:
    """A text that must not appear in logs, errors or pages; only ``reveal`` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret('{MASK}')"

    def __str__(self) -> str:
        return MASK

    def __format__(self, format_spec: str) -> str:
        return format(MASK, format_spec)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        msg = "a secret cannot be pickled"
        raise TypeError(msg)


@dataclass(frozen=True, slots=True)
class PasswordSource:
    """The source of a password: one of the two.

    Attributes:
        command: a program and its arguments.
        function: a function in Python, as ``package.module.function``.
    """

    command: tuple[str, ...] = field(default=(), repr=False)
    function: str = ""


class Sanitizer:
    """Decides by a property's name whether its value is a secret.

    ``custom.sanitize.pattern`` extends the built-in names; it cannot remove any.
    """

    __slots__ = ("_custom",)

    def __init__(self, pattern: str = DEFAULT_SANITIZE_PATTERN) -> None:
        """Compile the pattern. Raises ``InvalidPatternError`` if it is invalid."""
        self._custom = compile_java(pattern, ignore_case=True)

    def is_secret(self, name: str) -> bool:
        """Return whether the value of the property is a secret."""
        return _ALWAYS.fullmatch(name) is not None or self._custom.fullmatch(name) is not None

    def shown(self, name: str, value: str) -> str:
        """Return the value, or asterisks if it is a secret."""
        return MASK if self.is_secret(name) else value

    def masked(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return all properties, with asterisks instead of secrets."""
        return {masked_name(name): self.shown(name, value) for name, value in properties.items()}


def masked_name(name: str) -> str:
    """Return a property's name without the salt that is part of the name of a hash rule."""
    return _SALT.sub(MASK, name)
