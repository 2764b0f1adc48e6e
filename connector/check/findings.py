"""What a check finds: errors that keep the connector from starting, warnings, and remarks."""

import enum
from collections.abc import Iterable
from typing import NamedTuple

from rowtide.connector.config.errors import Problem


class Severity(enum.IntEnum):
    """How bad a finding is."""

    ERROR = 3
    WARNING = 2
    REMARK = 1


class Finding(NamedTuple):
    """One thing that a check found.

    Attributes:
        severity: how bad it is.
        subject: the property or server variable that it is about.
        message: what is wrong, or may go wrong, and the way out; never a secret.
    """

    severity: Severity
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


class CheckFailedError(Exception):
    """The server or Kafka is not as the connector needs it.

    Attributes:
        findings: all of them, errors first.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(sorted(findings, key=lambda finding: -finding.severity))
        errors = [finding for finding in self.findings if finding.severity is Severity.ERROR]
        super().__init__("the connector cannot start:\n" + "\n".join(f"  - {finding}" for finding in errors))


def errors_in(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that keep the connector from starting."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def from_problem(problem: Problem) -> Finding:
    """A problem of the configuration, or of a connection, as a finding."""
    return Finding(Severity.ERROR, problem.property, problem.message)
