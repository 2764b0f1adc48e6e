"""The class of the Faust app: what is left of Faust's app when it neither reads Kafka nor serves pages of its own."""

import logging

import faust
from faust.app.base import BootStrategy as FaustBootStrategy

from rowtide.connector.worker.reports.reporter import Reporter
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.web.access import Access
from rowtide.connector.worker.web.connect_rest import routes
from rowtide.connector.worker.web.pages import pages
from rowtide.connector.worker.web.server import WebServer
from rowtide.connector.worker.web.signals import signal_routes


class BootStrategy(FaustBootStrategy):
    """Starts Faust's web server, and nothing that connects to Kafka."""

    enable_kafka = False


class App(faust.App):
    """The Faust app of one connector.

    Attributes:
        rowtide: the service that runs the connector.
        reporter: the service that shows what the connector does.
        show_progress: whether a live view may be drawn on the terminal.
        log_format: one of ``logs.FORMATS``.
        token: what requests that control a connector must have; ``None`` if only this machine may send them.
        any_port: whether the web server takes a free port if its own is in use.
    """

    logger = logging.getLogger("mode.rowtide")
    BootStrategy = BootStrategy
    rowtide: ConnectorService
    reporter: Reporter
    show_progress = True
    log_format = "text"
    any_port = False
    token: str | None = None

    async def on_first_start(self) -> None:
        """Create no data folder, which Faust would do here: offsets and schema history are in Kafka."""

    def _new_web(self) -> WebServer:
        connectors = {self.rowtide.config.name: self.rowtide}
        access = Access(self.token, self.conf.web_bind)
        rest = [*routes(connectors, access), *signal_routes(connectors, access)]
        return WebServer(
            self, [*pages(self.rowtide.status, self.rowtide.status_at_once), *rest], any_port=self.any_port
        )
