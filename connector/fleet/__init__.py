"""A fleet: workers on several machines that share connectors, with their configurations and statuses in Kafka.

Each worker is a Faust app, and the consumer group of the apps is the fleet: a connector belongs to the worker that has
its partition of the fleet's topic. Configurations and statuses are in the topics of a Kafka Connect cluster, in its
formats, so a fleet can take over the connectors of a cluster, and hand them back. ``faust -A rowtide.connector.fleet``
finds ``app`` here.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return ``app``, for ``faust -A``; it is created on first access, not when the package is imported."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rowtide.connector.fleet.faust_app import app_from_environment  # noqa: PLC0415 - needs Faust

    return app_from_environment()
