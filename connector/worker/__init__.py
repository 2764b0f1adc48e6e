"""The worker process: the Faust app around the engine, with its log, its progress bar, ``/health`` and ``/metrics``.

Import :func:`~rowtide.connector.worker.faust_app.create_app` and :func:`~rowtide.connector.worker.faust_app.run` from
``faust_app``. ``faust -A rowtide.connector.worker`` finds ``app`` here. It must not know how changes are read or
delivered: it starts and stops the engine and reports on it.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """``app``, for ``faust -A``: made when it is asked for, not when the package is imported."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rowtide.connector.worker.faust_app import app_from_environment  # noqa: PLC0415 - needs Faust

    return app_from_environment()
