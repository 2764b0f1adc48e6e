"""A schema registry: Apicurio's, which keeps everything in memory and has Confluent's interface too."""

import urllib.error
import urllib.request
from pathlib import Path

from rowtide_stack.programs import catalogue
from rowtide_stack.programs.host import java
from rowtide_stack.runners.runner import ContainerPlan, LocalPlan
from rowtide_stack.servers.server import Server

__all__ = ["Registry"]

_HEAP = "512m"


class Registry(Server):
    """A schema registry without log-in. After a restart it is empty."""

    name = "registry"

    @property
    def url(self) -> str:
        """The URL of Confluent's interface, for ``schema.registry.url``."""
        return f"http://{self.address}/apis/ccompat/v7"

    @property
    def apicurio_url(self) -> str:
        """The URL of Apicurio's own interface, for ``apicurio.registry.url``."""
        return f"http://{self.address}/apis/registry/v2"

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:  # it begins to answer before everything is loaded
            return False

    def _local(self) -> LocalPlan:
        return LocalPlan(self._prepare)

    def _prepare(self, folder: Path) -> list[str]:
        options = [f"-Xmx{_HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}"]
        address = [f"-Dquarkus.http.host={self.host}", f"-Dquarkus.http.port={self.port}"]
        return [str(java()), *options, *address, "-jar", str(catalogue.registry())]

    def _container(self) -> ContainerPlan:
        return ContainerPlan(
            image=f"apicurio/apicurio-registry-mem:{catalogue.REGISTRY_VERSION}", port=8080, environment={}
        )
