"""The Faust app of a fleet's worker: its consumer group is the fleet, its agent receives signals.

The agent's topics are shared by the workers: one by all of them, and one for each label by those that have it. The
group assigns each partition, and with it the connectors of that partition, to one of them. Faust's sticky assignor
moves as few partitions as possible, and assigns the partitions of a topic only to workers that share it. A connector
continues while the group rebalances, and stops when its partition has another owner. Both may run for a moment: Kafka
fences the older one, because each connector writes under its own transactional id.
"""

import functools
import logging
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote

import faust
from faust.app.base import BootStrategy as FaustBootStrategy
from faust.assignor.partition_assignor import PartitionAssignor
from faust.types import TP
from yarl import URL

from rowtide.connector.delivery.kafka.tls import tls_context
from rowtide.connector.errors import SignalError
from rowtide.connector.fleet.fleet import Fleet
from rowtide.connector.fleet.settings import FleetSettings, fleet_settings
from rowtide.connector.fleet.topics import prepare_topics
from rowtide.connector.kafka_producer.connection.settings import ConnectionSettings
from rowtide.connector.worker.faust_app import app_of_files
from rowtide.connector.worker.memory_release import MemoryRelease
from rowtide.connector.worker.process import Worker
from rowtide.connector.worker.reports.otel_metrics import OtelMetrics
from rowtide.connector.worker.reports.reporter import Reporter
from rowtide.connector.worker.reports.systemd import SystemdNotifier
from rowtide.connector.worker.standalone_app import App
from rowtide.connector.worker.web.server import WebServer
from rowtide.connector.worker.web.settings import WebSettings
from rowtide.schema_history.store.topic_writer import TopicWriteError

log = logging.getLogger(__name__)

# These loggers report an unavailable broker ten times a second, and each rebalance. The connectors report it once.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
logging.getLogger("aiokafka.consumer.group_coordinator").setLevel(logging.ERROR)


class BootStrategy(FaustBootStrategy):
    """Starts Faust's clients and agents, without the sensors, which sample the event loop every second."""

    enable_sensors = False


class FleetApp(App):
    """The Faust app of a fleet's worker."""

    BootStrategy = BootStrategy  # type: ignore[assignment]  # the standalone app starts less of Faust
    connectors: Fleet  # type: ignore[assignment]

    async def on_start(self) -> None:
        """Start like an app with agents."""
        await faust.App.on_start(self)

    def _new_web(self) -> WebServer:
        web = super()._new_web()
        web.on_listening = self._name_worker
        return web

    def _name_worker(self) -> None:
        """Put the address of the web server into the assignor's key of this worker, so that all workers know it."""
        # The host is an id: two may have one address, such as a worker that was killed and its successor.
        self.conf.canonical_url = URL(f"http://{uuid.uuid4()}/{quote(self.connectors.worker_id(), safe='')}")


def create_app(
    settings: FleetSettings,
    partitions: Mapping[str, int],
    web: WebSettings,
    files: Callable[[], FleetSettings] | None = None,
) -> FleetApp:
    """Create the Faust app of a fleet's worker.

    Args:
        settings: of the worker.
        partitions: the numbers of partitions of the topics that the worker shares.
        web: the settings of the web server.
        files: reads the settings again from their files, at SIGHUP.

    Raises:
        TlsFileError: a certificate or key cannot be used.
    """
    app = FleetApp(
        settings.group,
        broker_client_id=settings.client_id,
        broker=[f"kafka://{broker}" for broker in settings.connection.bootstrap],
        broker_credentials=_credentials(settings.connection),
        broker_session_timeout=settings.session_s,
        broker_heartbeat_interval=settings.heartbeat_s,
        broker_rebalance_timeout=max(10.0, settings.session_s),
        broker_request_timeout=max(settings.session_s, settings.connection.request_timeout),
        consumer_auto_offset_reset="earliest",
        topic_allow_declare=False,
        topic_disable_leader=True,
        Worker=Worker,
        web_bind=web.address.host,
        web_port=web.address.port,
        web_ssl_context=web.tls,
        canonical_url=f"http://{uuid.uuid4()}",  # the assignor's key of a worker
        env={},  # variables would override the values given here
    )
    app.web_settings = web

    def worker_id() -> str:
        host = settings.advertised_host or socket.gethostname()
        return f"{host}:{settings.advertised_port or cast('WebServer', app.web).port or web.address.port}"

    fleet = app.connectors = Fleet(settings, worker_id, files)
    app.reporter = Reporter(list)
    app.systemd = SystemdNotifier(list)
    app.services += [fleet, app.reporter, app.systemd, MemoryRelease(), OtelMetrics(fleet.services.values)]
    topic = app.topic(
        *partitions,
        partitions=partitions[settings.fleet_topic],
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
    )

    @app.agent(topic, name="signals")
    async def signals(stream: Any) -> None:
        async for key, value in stream.items():
            await take_signal(fleet, key, value)

    @app.on_partitions_assigned.connect(weak=False)
    async def assigned(_app: Any, assigned: Iterable[TP], **_: Any) -> None:
        given: dict[str, set[int]] = {name: set() for name in partitions}
        for one in assigned:
            if one.topic in given:
                given[one.topic].add(one.partition)
        fleet.assigned(given, cast("PartitionAssignor", app.assignor).external_topic_distribution)

    return app


@functools.cache
def app_from_environment() -> FleetApp:
    """Return the app for ``faust -A rowtide.connector.fleet``, created once.

    Raises:
        click.ClickException: as :func:`~rowtide.connector.worker.faust_app.app_of_files`.
    """

    def create(files: list[str]) -> FleetApp:
        settings = fleet_settings(files)
        return create_app(settings, prepare_topics(settings), WebSettings.choose(), lambda: fleet_settings(files))

    return cast("FleetApp", app_of_files(create))


async def take_signal(fleet: Fleet, key: bytes | None, value: bytes | None) -> None:
    """Pass a signal from a topic of the fleet to its connector. An invalid signal is logged and skipped.

    Args:
        fleet: the connectors of this worker.
        key: the connector's name.
        value: the signal as JSON, with ``type``, ``data`` and ``id``.
    """
    name = (key or b"").decode("utf-8", "replace")
    try:
        await fleet.signal(name, value or b"null")
    except (ValueError, RecursionError, SignalError, TopicWriteError) as error:
        log.warning("a signal for connector %s is skipped: %s", name, error)


def _credentials(connection: ConnectionSettings) -> Any:
    """Return the credentials of Faust's clients; ``None`` for plain text."""
    context = None if connection.tls is None else tls_context(connection.tls)
    if connection.credentials is not None:
        given = connection.credentials
        return faust.SASLCredentials(
            username=given.username, password=given.password, mechanism=given.mechanism, ssl_context=context
        )
    return None if context is None else faust.SSLCredentials(context)
