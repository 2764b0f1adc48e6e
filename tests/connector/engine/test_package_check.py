"""The check that packages of extras are installed."""

from __future__ import annotations

import sys

import pytest

from rowtide.connector.check import Severity
from rowtide.connector.config import from_properties
from rowtide.connector.engine.package_check import package_findings
from tests.support.configurations import PROPERTIES


@pytest.mark.parametrize(
    ("name", "value", "module", "package", "extra"),
    [
        ("rowtide.opentelemetry.enabled", "true", "telemetry.spans", "opentelemetry.sdk.resources", "otel"),
        ("openlineage.integration.enabled", "true", "telemetry.open_lineage", "openlineage.client", "openlineage"),
        ("rowtide.sink", "duckdb:x.duckdb", "delivery.tables.duckdb", "duckdb", "duckdb"),
        ("rowtide.sink", "delta:lake", "delivery.tables.delta", "deltalake", "delta"),
    ],
)
def test_a_missing_package_is_found_before_the_start(
    name: str, value: str, module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = from_properties(PROPERTIES | {name: value})
    assert list(package_findings(config)) == []
    monkeypatch.delitem(sys.modules, f"rowtide.connector.{module}")
    monkeypatch.setitem(sys.modules, package, None)
    (finding,) = package_findings(config)
    assert (finding.severity, finding.subject) == (Severity.ERROR, name)
    assert finding.message == f"needs the package {package}, which is not installed: pip install 'rowtide[{extra}]'"


def test_no_package_is_needed_without_these_properties() -> None:
    assert list(package_findings(from_properties(PROPERTIES))) == []
