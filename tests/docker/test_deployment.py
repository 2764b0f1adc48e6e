"""The files for systemd, Kubernetes, Prometheus and Grafana, checked by their own tools where those are installed."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.connectors.run import run
from rowtide.connector.config import from_properties
from rowtide.connector.config.files.files import read_file
from rowtide.connector.worker.faust_app import create_app
from tests.support.configurations import PROPERTIES
from tests.support.source_tree import ROOT

DOCKER = ROOT / "docker"
UNIT = DOCKER / "systemd/rowtide@.service"
ALERTS = DOCKER / "prometheus/rowtide-alerts.yaml"
PAGES = "".join((ROOT / f"docs/{name}.md").read_text() for name in ("monitoring", "verify"))
METRICS = set(re.findall(r"^\| `(rowtide_\w+)` \|", PAGES, re.MULTILINE))
"""The metrics of the documentation, which another test compares with the code."""


def dashboard() -> dict[str, Any]:
    return json.loads((DOCKER / "grafana/rowtide.json").read_text())  # type: ignore[no-any-return]


def manifests() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all((DOCKER / "kubernetes/rowtide.yaml").read_text())}


def expressions() -> Iterator[str]:
    """Every expression of the alerts and of the dashboard."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def options(arguments: list[str]) -> None:
    """Parse arguments of ``rowtide run``; an unknown option is an error."""
    given = [part for part in arguments if not part.startswith("/etc")]
    run.make_context("run", [*given, str(ROOT / "README.md")], **main.context_settings)


def test_alerts_and_dashboard_use_metrics_that_exist() -> None:
    used = {name.removesuffix("_bucket") for text in expressions() for name in re.findall(r"\browtide_\w+", text)}
    assert len(used) > 15
    assert used - METRICS == set()


def test_the_dashboard_is_complete() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    titles = " ".join(panel["title"] for panel in panels)
    for word in ("Lag", "Throughput", "Queue", "Snapshot", "Errors", "restarts"):
        assert word in titles
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(x for x, _ in cells) < 24
    assert all('{connector=~"$connector"}' in target["expr"] for panel in panels for target in panel["targets"])


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_accepts_the_alerts_and_their_test(tmp_path: Path) -> None:
    subprocess.run(["promtool", "check", "rules", ALERTS], check=True, capture_output=True)
    test = ALERTS.with_name("rowtide-alerts.test.yaml")
    subprocess.run(["promtool", "test", "rules", test], check=True, capture_output=True)
    file = tmp_path / "dashboard.yaml"
    rules = [
        {"record": f"dashboard:{place}", "expr": re.sub(r"\$__rate_interval", "5m", text)}
        for place, text in enumerate(expressions())
    ]
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    subprocess.run(["promtool", "check", "rules", file], check=True, capture_output=True)


def test_the_kubernetes_manifests_fit_together() -> None:
    found = manifests()
    assert set(found) == {"ConfigMap", "Secret", "Deployment", "Service"}
    spec = found["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["replicas"] == 1
    labels = spec["template"]["metadata"]["labels"]
    assert labels == spec["selector"]["matchLabels"] == found["Service"]["spec"]["selector"]
    assert pod["volumes"][0]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert container["envFrom"][0]["secretRef"]["name"] == found["Secret"]["metadata"]["name"]
    (port,) = container["ports"]
    assert {f"--web-port={port['containerPort']}", "--web-bind=0.0.0.0"} <= set(container["args"])
    (mount, _) = container["volumeMounts"]
    assert container["args"][-1] == f"{mount['mountPath']}/{next(iter(found['ConfigMap']['data']))}"
    assert container["args"][0] == "run"
    options(container["args"][1:])


def test_the_probes_ask_for_pages_that_exist() -> None:
    (container,) = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("liveness", "readiness", "startup")}
    assert probes == {"liveness": "/health/live", "readiness": "/health/ready", "startup": "/health/live"}
    app = create_app(from_properties(PROPERTIES))
    app.finalize()
    pages = {route.resource.canonical for route in app.web.web_app.router.routes()}
    assert {*probes.values(), "/metrics"} <= pages


def test_the_configuration_in_kubernetes_is_valid(tmp_path: Path) -> None:
    ((name, text),) = manifests()["ConfigMap"]["data"].items()
    (tmp_path / name).write_text(text)
    environ = manifests()["Secret"]["stringData"]
    config = from_properties(read_file(tmp_path / name).properties, environ)
    assert (config.name, config.warnings) == ("shop", ())
    assert config.database.password.reveal() == "change-me"


def test_the_systemd_unit() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) > 30, "three keep-alives, one of which may be late"
    words = service["ExecStart"].split()
    assert words[1] == "run"
    options(words[2:])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    file = tmp_path / UNIT.name
    file.write_text(UNIT.read_text().replace("/opt/rowtide/bin/rowtide", "/bin/true"))
    found = subprocess.run(["systemd-analyze", "verify", "--man=no", file], check=True, capture_output=True, text=True)
    assert [line for line in found.stderr.splitlines() if UNIT.name in line] == []


def test_the_help_names_every_option_that_the_files_use() -> None:
    text = CliRunner().invoke(main, ["run", "--help"]).output
    for option in ("--web-bind", "--web-port", "--log-format", "--no-progress"):
        assert option in text
