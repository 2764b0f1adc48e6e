"""The runner with Docker: a container, managed through testcontainers.

testcontainers also starts the container Ryuk, which removes the others when this process ends or is killed.
"""

from typing import Any

from rowtide_stack.ports import HOST
from rowtide_stack.runners.runner import ContainerPlan

__all__ = ["ContainerRunner"]


class ContainerRunner:
    """A container that keeps its port and its data while it is stopped."""

    def __init__(self, name: str, port: int, plan: ContainerPlan) -> None:
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - slow, and not for local processes

        container = DockerContainer(plan.image).with_envs(**plan.environment).with_name(f"rowtide-{name}-{port}")
        if plan.command:
            container.with_command(list(plan.command))
        for folder, inside in plan.volumes.items():
            container.with_volume_mapping(folder, inside, "ro")
        # testcontainers publishes random ports, but the port must stay the same after a restart. with_bind_ports would
        # publish it on all interfaces.
        ports: dict[str, Any] = container.ports
        ports[f"{plan.port}/tcp"] = (HOST, port)
        self._definition = container
        self._container: Any = None

    def start(self) -> None:
        """Create the container, or start it again."""
        if self._container is None:
            self._container = self._definition.start().get_wrapped_container()
        elif not self.running():
            self._container.start()

    def stop(self, patience: float) -> None:
        """Send SIGTERM, and SIGKILL after ``patience`` seconds."""
        if self.running():
            self._existing().stop(timeout=int(patience))

    def kill(self) -> None:
        """Send SIGKILL."""
        if self.running():
            self._existing().kill()
            self._existing().wait()

    def pause(self) -> None:
        """Suspend all processes of the container."""
        if self.running():
            self._existing().pause()

    def resume(self) -> None:
        """Continue the suspended processes."""
        if self._container is not None:
            self._container.reload()
            if self._container.status == "paused":
                self._container.unpause()

    def running(self) -> bool:
        """Return whether the container runs or is paused."""
        if self._container is None:
            return False
        self._container.reload()
        return str(self._container.status) in ("running", "paused")

    def log(self) -> str:
        """Return the output of the container."""
        return self._container.logs().decode(errors="replace") if self._container else ""

    def close(self) -> None:
        """Remove the container and its volumes."""
        self._definition.stop(force=True, delete_volume=True)

    def _existing(self) -> Any:
        if self._container is None:
            raise RuntimeError("the container has not been created")
        return self._container
