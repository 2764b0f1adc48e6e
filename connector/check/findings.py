"""The results of a check: errors that keep the connector from starting, warnings, and remarks."""

import enum
from collections.abc import Iterable
from typing import NamedTuple, Self

from rowtide.connector.config.errors import Problem
from rowtide.connector.errors import ConnectorError


class Severity(enum.IntEnum):
    """The severity of a finding; only errors keep the connector from starting."""

    ERROR = 3
    WARNING = 2
    REMARK = 1


class Finding(NamedTuple):
    """One result of a check.

    Attributes:
        severity: error, warning or remark.
        subject: the property or server variable concerned.
        message: the problem or risk, and how to fix it; never a secret.
        retriable: whether the error may pass without a change of the configuration: a server is unavailable.
        tolerated: whether the worker starts despite the error, because it may be intended.
        planned: whether it is about a statement that is not executed (``rowtide check --ddl``).
    """

    severity: Severity
    subject: str
    message: str
    retriable: bool = False
    tolerated: bool = False
    planned: bool = False

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"

    @classmethod
    def error(
        cls, subject: str, message: str, *, retriable: bool = False, tolerated: bool = False, planned: bool = False
    ) -> Self:
        """Return an error."""
        return cls(Severity.ERROR, subject, message, retriable, tolerated, planned)

    @classmethod
    def warning(cls, subject: str, message: str) -> Self:
        """Return a warning."""
        return cls(Severity.WARNING, subject, message)

    @classmethod
    def remark(cls, subject: str, message: str) -> Self:
        """Return a remark."""
        return cls(Severity.REMARK, subject, message)


class CheckFailedError(ConnectorError):
    """The database or Kafka does not meet the connector's requirements, or is unavailable.

    Attributes:
        findings: all of them, errors first.
        retriable: whether all errors may pass: the database or Kafka is unavailable, and nothing else is wrong.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(ranked(findings))
        errors = [finding for finding in errors_in(self.findings) if not finding.tolerated]
        self.retriable = bool(errors) and all(finding.retriable for finding in errors)
        if self.retriable:
            text = "; ".join(str(finding) for finding in errors)
        else:
            text = "the connector cannot start:\n" + "\n".join(f"  - {finding}" for finding in errors)
        super().__init__(text)


def errors_in(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the errors among the findings; all but tolerated ones keep the worker from starting."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, errors first."""
    return sorted(findings, key=lambda finding: -finding.severity)


def from_problem(problem: Problem, *, retriable: bool = False) -> Finding:
    """Return a problem of the configuration, or of a connection, as an error."""
    return Finding.error(problem.property, problem.message, retriable=retriable)
