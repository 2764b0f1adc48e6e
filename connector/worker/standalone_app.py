"""The Faust app of a worker that reads no Kafka topics: Faust provides the life cycle, the web server and signals."""

import logging
from collections.abc import Iterable
from functools import partial
from typing import Any

import faust
from faust.app.base import BootStrategy as FaustBootStrategy
from mode import ServiceT

from rowtide.connector.worker.connectors import Connectors
from rowtide.connector.worker.reports.reporter import Reporter
from rowtide.connector.worker.reports.systemd import SystemdNotifier
from rowtide.connector.worker.validation import matching_tables
from rowtide.connector.worker.web.connect_rest import routes, with_slashes
from rowtide.connector.worker.web.debezium_rest import debezium_routes
from rowtide.connector.worker.web.page.neighbours import Neighbours
from rowtide.connector.worker.web.page.proofs import Proofs
from rowtide.connector.worker.web.page.routes import Page
from rowtide.connector.worker.web.pages import pages
from rowtide.connector.worker.web.plugins import plugin_routes
from rowtide.connector.worker.web.server import WebServer
from rowtide.connector.worker.web.settings import WebSettings
from rowtide.connector.worker.web.signals import signal_routes


class BootStrategy(FaustBootStrategy):
    """Starts Faust's web server and the app's services.

    A standalone worker has no agents and no tables, so it needs neither Faust's Kafka clients nor its sensors, which
    sample the event loop every second.
    """

    enable_kafka = False
    enable_sensors = False


class App(faust.App):
    """The Faust app of one or several connectors.

    Args:
        name: the name of the app.
        settings: Faust's settings.

    Attributes:
        services: the services that start after the web server, and stop before it.
        connectors: the service that runs the connectors.
        reporter: the service that shows their status.
        systemd: the service that notifies systemd.
        show_progress: whether a live view may be drawn on the terminal.
        log_format: one of ``logs.FORMATS``.
        web_settings: the settings of the web server.
    """

    logger = logging.getLogger("mode.rowtide")
    BootStrategy = BootStrategy
    connectors: Connectors
    reporter: Reporter
    systemd: SystemdNotifier
    show_progress = True
    log_format = "text"
    web_settings: WebSettings

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.services: list[ServiceT] = []

    def on_init_dependencies(self) -> Iterable[ServiceT]:
        """Return the services that Faust starts with the app."""
        return [*super().on_init_dependencies(), *self.services]

    async def on_first_start(self) -> None:
        """Create no data directory: Faust keeps the tables of its agents there, and this app has none."""

    async def on_start(self) -> None:
        """Complete the settings, without the consumer that Faust would create here for its agents."""
        self.finalize()

    def _new_web(self) -> WebServer:
        services, access = self.connectors.services, self.web_settings.access()
        matching = partial(matching_tables, build=self.connectors.candidate)
        neighbours = Neighbours(self.connectors.members, tls=self.web_settings.tls is not None)
        editable = self.connectors.store is not None
        proofs = Proofs(self.web_settings.proofs)
        page = Page(
            services, self.connectors.controlled, access, self.connectors, neighbours, editable=editable, proofs=proofs
        )
        controlled = [
            *routes(self.connectors.controlled, access, self.connectors.store),
            *plugin_routes(access, self.connectors.validate, self.connectors.kafka),
            *debezium_routes(
                access, services, self.connectors.controlled, self.connectors.validate, matching, neighbours
            ),
        ]
        signals = signal_routes(services, access, neighbours)
        served = [
            *pages(services.values(), several=self.connectors.several),
            *with_slashes(controlled),
            *signals,
            *page.routes(),
        ]
        any_port = self.web_settings.address.any_port
        return WebServer(self, served, any_port=any_port, running=page.running, on_stop=page.close)
