"""The class of the Faust app: what is left of Faust's app when it neither reads Kafka nor serves pages of its own."""

import logging
from typing import Any

import faust
from faust.app.base import BootStrategy as FaustBootStrategy

from rowtide.connector.worker.connectors import Connectors
from rowtide.connector.worker.imports import PostponedModule, PostponedName
from rowtide.connector.worker.reports.reporter import Reporter
from rowtide.connector.worker.web.access import Access
from rowtide.connector.worker.web.connect_rest import routes
from rowtide.connector.worker.web.pages import pages
from rowtide.connector.worker.web.server import WebServer
from rowtide.connector.worker.web.signals import signal_routes


class BootStrategy(FaustBootStrategy):
    """Starts Faust's web server, and nothing that connects to Kafka or samples the event loop every second."""

    enable_kafka = False
    enable_sensors = False


class NotUsed:
    """Stands for a class of Faust that belongs to its use of Kafka, so that it is not imported."""


_NOT_USED: dict[str, Any] = dict.fromkeys(
    (
        "ConsumerScheduler",
        "Event",
        "GlobalTable",
        "LeaderAssignor",
        "PartitionAssignor",
        "Router",
        "SetGlobalTable",
        "SetTable",
        "Table",
        "TableManager",
        "Topic",
    ),
    NotUsed,
)
"""Settings of Faust that name such a class. With aiokafka, which they import, they would take 6 MB."""
_CLIENT = PostponedName(PostponedModule("aiohttp.client"), "ClientSession")


class App(faust.App):
    """The Faust app of one or several connectors.

    Args:
        name: the name of the app.
        settings: those of Faust.

    Attributes:
        connectors: the service that runs the connectors.
        reporter: the service that shows what they do.
        show_progress: whether a live view may be drawn on the terminal.
        log_format: one of ``logs.FORMATS``.
        token: what requests that control a connector must have; ``None`` if only this machine may send them.
        any_port: whether the web server takes a free port if its own is in use.
    """

    logger = logging.getLogger("mode.rowtide")
    BootStrategy = BootStrategy
    connectors: Connectors
    reporter: Reporter
    show_progress = True
    log_format = "text"
    any_port = False
    token: str | None = None

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, HttpClient=_CLIENT, **_NOT_USED, **settings)

    def service(self, cls: Any) -> Any:
        """Start a service, or one of a class, with the app.

        Faust's method also marks it for the discovery of modules, which rowtide does not use, and looks through the
        files of all modules for that (40 ms).
        """
        self._extra_services.append(cls)
        return cls

    async def on_first_start(self) -> None:
        """Create no data folder, which Faust would do here: offsets and schema history are in Kafka."""

    async def on_start(self) -> None:
        """Complete the configuration, without a consumer and its transport, which Faust would make here."""
        self.finalize()

    async def on_started(self) -> None:
        """Start the services of the app, without waiting for tables, which Faust would make here."""
        await self.on_started_init_extra_services()

    def _new_web(self) -> WebServer:
        services, access = self.connectors.services, Access(self.token, self.conf.web_bind)
        served = [*pages(list(services.values())), *routes(services, access), *signal_routes(services, access)]
        return WebServer(self, served, any_port=self.any_port)
