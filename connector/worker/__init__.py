"""The worker process: a Faust app that runs the engine, with its log, progress bar, ``/health`` and ``/metrics``.

Import :func:`~rowtide.connector.worker.faust_app.create_app` and :func:`~rowtide.connector.worker.faust_app.run` from
``faust_app``. ``faust -A rowtide.connector.worker`` finds ``app`` here. The worker starts and stops the engine and
reports its status; it does not depend on how changes are read or delivered.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return ``app``, for ``faust -A``; it is created on first access, not when the package is imported."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rowtide.connector.worker.faust_app import app_from_environment  # noqa: PLC0415 - needs Faust

    return app_from_environment()
