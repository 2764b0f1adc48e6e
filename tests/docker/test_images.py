"""The Dockerfile and the compose file, as far as they can be tested without a Docker engine."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from rowtide.cli.tables import tables as cli_tables
from rowtide.connector.config import load
from tests.support.source_tree import PARTS, ROOT

DOCKER = ROOT / "docker"
PINNED = re.compile(r"[a-z0-9./-]+:[a-z-]*\d+\.\d+\.\d+[a-z0-9.-]*(@sha256:[0-9a-f]{64})?")
"""An image with a tag of three numbers, which does not move to another version."""
INSTRUCTIONS = {
    *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "SHELL"),
    *("STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}
"""The instructions that may be used. ADD does more than COPY says, and MAINTAINER and ONBUILD are obsolete."""


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, without comments and line breaks."""
    text = (DOCKER / "Dockerfile").read_text()
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    return [
        (line.split(maxsplit=1)[0], line.split(maxsplit=1)[1].strip()) for line in joined.splitlines() if line.strip()
    ]


def stages() -> dict[str, list[tuple[str, str]]]:
    """The stages by name, each with the instructions of the stages it is based on, followed by its own."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for instruction, arguments in dockerfile():
        if instruction == "FROM":
            base, _, name = arguments.split()
            found[name] = list(found.get(base, []))
        else:
            found[name].append((instruction, arguments))
    return found


def last(stage: str, instruction: str) -> str:
    """The arguments of the last such instruction of a stage, which is the effective one."""
    return [arguments for name, arguments in stages()[stage] if name == instruction][-1]


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    return loaded


def test_the_dockerfile_has_known_instructions_and_starts_with_an_image() -> None:
    assert {instruction for instruction, _ in dockerfile()} <= INSTRUCTIONS
    assert dockerfile()[0][0] == "FROM"


def test_every_stage_is_named_and_starts_from_a_pinned_image_or_a_stage() -> None:
    names: set[str] = set()
    for instruction, arguments in dockerfile():
        if instruction == "FROM":
            base, word, name = arguments.split()
            assert word == "AS"
            assert base in names or PINNED.fullmatch(base), base
            names.add(name)


def test_the_default_target_is_the_worker() -> None:
    assert list(stages())[-1] == "worker"


@pytest.mark.parametrize("stage", ["worker", "spark"])
def test_an_image_runs_as_a_user_without_rights(stage: str) -> None:
    user = last(stage, "USER")
    assert user.isdigit(), "runAsNonRoot of Kubernetes needs a number"
    assert int(user) > 0
    rest = stages()[stage][[name for name, _ in stages()[stage]].index("USER") :]
    assert "RUN" not in [name for name, _ in rest]


@pytest.mark.parametrize("stage", ["worker", "spark"])
@pytest.mark.parametrize("instruction", ["ENTRYPOINT", "CMD"])
def test_a_program_is_started_without_a_shell_so_that_it_receives_signals(stage: str, instruction: str) -> None:
    assert all(isinstance(word, str) for word in json.loads(last(stage, instruction)))


def test_the_worker_has_a_health_check() -> None:
    options, _, command = last("worker", "HEALTHCHECK").partition("CMD")
    assert {"--interval=10s", "--timeout=5s"} <= set(options.split())
    code = json.loads(command)[-1]
    compile(code, "HEALTHCHECK", "exec")
    assert f":{last('worker', 'EXPOSE')}/health" in code


def test_the_copied_files_exist_and_are_not_ignored() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    admitted = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    copied = {
        word
        for name, words in dockerfile()
        if name == "COPY" and not words.startswith("--from=")
        for word in words.split()[:-1]
    }
    assert {*PARTS, "rowtide", "pyproject.toml", "README.md", "LICENSE"} <= copied
    assert {word for word in copied if not word.startswith("docker/requirements/")} == admitted
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_every_download_is_checked() -> None:
    commands = [part.strip() for name, line in dockerfile() if name == "RUN" for part in line.split("&&")]
    pip = [command for command in commands if "pip install" in command or "pip wheel" in command]
    assert len(pip) == 6
    for command in pip:
        local = "--no-index" in command or command.endswith(" .")
        assert ("--no-deps" if local else "--require-hashes") in command
        assert "pip install" in command or "--no-build-isolation" in command, "or setuptools is downloaded unchecked"
    assert any(command.startswith("sha256sum --check --strict /stack/spark-jars.sha256") for command in commands)


def test_the_spark_image_has_its_jars() -> None:
    (copied,) = (words.split() for name, words in stages()["spark"] if name == "COPY" and "--from" in words)
    assert copied == ["--from=spark-jars", "/jars", "/opt/rowtide/jars"]
    assert last("spark", "ENV") == "ROWTIDE_SPARK_JARS=/opt/rowtide/jars/*.jar"
    (tables,) = (parameter for parameter in cli_tables.params if parameter.name == "jars")
    assert tables.envvar == "ROWTIDE_SPARK_JARS"


def test_packages_lists_are_not_kept_in_the_image() -> None:
    for name, command in dockerfile():
        if name == "RUN" and "apt-get install" in command:
            assert "--no-install-recommends" in command
            assert command.startswith("apt-get update")
            assert command.endswith("rm -rf /var/lib/apt/lists/*")


def test_the_compose_file_has_the_services_of_the_readme() -> None:
    assert set(compose()["services"]) == {"mysql", "kafka", "rowtide", "spark"}


@pytest.mark.parametrize("name", ["mysql", "kafka"])
def test_a_service_of_others_has_a_pinned_image(name: str) -> None:
    service = compose()["services"][name]
    assert PINNED.fullmatch(service["image"])
    assert "healthcheck" in service


@pytest.mark.parametrize("name", ["rowtide", "spark"])
def test_our_own_services_are_built_from_a_stage(name: str) -> None:
    service = compose()["services"][name]
    assert service["build"]["target"] in stages()
    assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).samefile(DOCKER / "Dockerfile")
    assert service["cap_drop"] == ["ALL"]


def test_services_wait_for_healthy_ones() -> None:
    services = compose()["services"]
    for service in services.values():
        for name, wait in service.get("depends_on", {}).items():
            assert wait == {"condition": "service_healthy"}
            assert "healthcheck" in services[name]


def test_ports_are_open_on_this_machine_only() -> None:
    ports = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_volumes_are_declared_and_files_exist() -> None:
    loaded = compose()
    for service in loaded["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (DOCKER / source).is_file() if source.startswith(".") else source in loaded["volumes"], volume


def test_environment_values_are_text() -> None:
    # YAML reads 1 as a number and no as false. Compose rejects booleans, and both lose their notation.
    for service in compose()["services"].values():
        assert all(isinstance(value, str) for value in service.get("environment", {}).values())


def test_rowtide_accepts_the_configuration_of_the_compose_file() -> None:
    services = compose()["services"]
    environment = dict.fromkeys(services["rowtide"]["environment"], "set")
    configuration = load(DOCKER / "config/rowtide.properties", environment)
    assert configuration.database.hostname in services
    assert configuration.database.user == services["mysql"]["environment"]["MYSQL_USER"]
    assert configuration.kafka.bootstrap_servers in services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


SCRIPTS = [f"docker/{name}" for name in ("demo", "lock", "setup", "stack", "test")] + [".ci/audit", ".ci/run"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_can_be_run_and_stop_at_the_first_error(name: str) -> None:
    path: Path = ROOT / name
    assert path.stat().st_mode & stat.S_IXUSR
    lines = path.read_text().splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
