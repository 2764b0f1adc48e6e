"""OpenLineage events of a connector, as Debezium 3.6 sends them. Needs openlineage-python.

The connector is a job, and each of its starts in a process is a run. START begins it, RUNNING says that it works and
brings datasets, FAIL has an error, and COMPLETE ends it. A thread sends the events: the connector does not wait.

Sources of the form: Debezium's module debezium-openlineage (``OpenLineageEmitter``, ``DebeziumConfigFacet``) and its
documentation "Integrating with OpenLineage".
"""

import contextlib
import functools
import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attr
import yaml
from openlineage.client import OpenLineageClient
from openlineage.client import __version__ as adapter_version
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.generated.base import RunFacet
from openlineage.client.generated.dataset_type_dataset import DatasetTypeDatasetFacet
from openlineage.client.generated.documentation_job import DocumentationJobFacet
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.ownership_job import Owner, OwnershipJobFacet
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields
from openlineage.client.generated.tags_job import TagsJobFacet, TagsJobFacetFields

from rowtide._version import __version__
from rowtide.connector.config import Configuration
from rowtide.connector.telemetry import TelemetryError
from rowtide.connector.telemetry.exporters import Outages
from rowtide.envelope.schema import Field
from rowtide.envelope.table import TableSchema

_PRODUCER = f"https://github.com/rowtide/rowtide/tree/v{__version__}"
_CONFIG = "debezium_config"
_CONFIG_SCHEMA = (
    "https://github.com/debezium/debezium/tree/main/debezium-openlineage/src/main/java/io/debezium/openlineage/facets/"
    "spec/DebeziumRunFacet.json"
)
_MOST_WAITING = 1000
"""Events that wait to be sent, in addition to one for each table and topic; more are dropped."""
_CLOSE_S = 2.0


@attr.define
class DebeziumConfigFacet(RunFacet):
    """The configuration of a connector.

    Attributes:
        configs: lines ``name=value``, with secrets masked.
    """

    configs: list[str] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return _CONFIG_SCHEMA


class OpenLineage:
    """Sends the events of a connector.

    Args:
        config: the configuration.
        run_id: the run, a UUID.

    Raises:
        TelemetryError: that file cannot be used.
    """

    def __init__(self, config: Configuration, run_id: str) -> None:
        self._config = config
        self._client = _client(config)
        self._job = _job(config)
        self._run_id = run_id
        self._run_facets: dict[str, RunFacet] = {
            "processing_engine": ProcessingEngineRunFacet(__version__, "rowtide", adapter_version, producer=_PRODUCER),
            _CONFIG: DebeziumConfigFacet(
                configs=[f"{name}={value}" for name, value in config.masked_properties().items()], producer=_PRODUCER
            ),
        }
        self._described: dict[tuple[str, str], object] = {}
        self._waiting: queue.SimpleQueue[Callable[[], RunEvent] | None] = queue.SimpleQueue()
        self._over = False
        self._outages = Outages("OpenLineage's events", "their receiver", "openlineage.integration.config.file.path")
        self._thread = threading.Thread(target=self._send_all, name=f"{config.name}/lineage", daemon=True)
        self._thread.start()

    def started(self) -> None:
        """Report that the connector starts."""
        self._put(RunState.START)

    def running(self) -> None:
        """Report that it works."""
        self._put(RunState.RUNNING)

    def failed(self, error: BaseException) -> None:
        """Report an error that has stopped it. It may start again: then it is reported as running."""
        self._put(RunState.FAIL, error=error)

    def completed(self) -> None:
        """Report that it has stopped gracefully."""
        self._put(RunState.COMPLETE)

    def tables(self, tables: Iterable[TableSchema], *, topics: bool) -> None:
        """Report captured tables whose structure is new, each as a separate event, as Debezium does.

        Args:
            tables: the tables with the schemas of their records.
            topics: whether to report their topics, too.
        """
        for one in tables:
            table = one.table
            name = f"{table.id.database}.{table.id.table}"
            if self._is_new("table", name, table):
                self._put(RunState.RUNNING, inputs=functools.partial(self._table, name, one))
            if topics and self._is_new("topic", one.topic, one.envelope):
                self._put(RunState.RUNNING, outputs=functools.partial(self._topic, one.topic, one.envelope.fields))

    def topics(self, names: Iterable[str]) -> None:
        """Report topics whose schemas are not known, once each."""
        for name in names:
            if self._is_new("topic", name, True):
                self._put(RunState.RUNNING, outputs=functools.partial(self._topic, name))

    def _table(self, name: str, one: TableSchema) -> list[InputDataset]:
        facets = _facets("TABLE", list(_columns(one, comments=self._config.values.include_schema_comments)))
        return [InputDataset(self._database, name, None, facets=facets)]

    def _topic(self, name: str, fields: Sequence[Field] = ()) -> list[OutputDataset]:
        """Return a topic as a dataset; without fields, its schema is not known."""
        facets = _facets("STREAM", [_field(field) for field in fields])
        return [OutputDataset(self._kafka, name, None, facets=facets)]

    def close(self) -> None:
        """Send the waiting events; returns after at most two seconds, and drops the rest."""
        self._waiting.put(None)
        self._thread.join(_CLOSE_S)
        self._over = True

    def _is_new(self, kind: str, name: str, description: object) -> bool:
        known = self._described.get((kind, name))
        self._described[kind, name] = description
        return known != description

    @property
    def _database(self) -> str:
        database = self._config.database
        return f"{self._config.flavor.value}://{database.hostname}:{database.port}"

    @property
    def _kafka(self) -> str:
        servers = self._config.telemetry.lineage_kafka or self._config.kafka.bootstrap_servers
        return f"kafka://{servers.partition(',')[0].strip()}"

    def _put(
        self,
        state: RunState,
        error: BaseException | None = None,
        inputs: Callable[[], list[InputDataset]] = list,
        outputs: Callable[[], list[OutputDataset]] = list,
    ) -> None:
        if self._waiting.qsize() >= _MOST_WAITING + len(self._described):
            self._outages.failed()
            return
        at = datetime.now(UTC).isoformat()
        # Ten thousand events with the columns of their tables would take more memory than the tables.
        self._waiting.put(lambda: self._event(at, state, error, inputs(), outputs()))

    def _event(
        self,
        at: str,
        state: RunState,
        error: BaseException | None,
        inputs: list[InputDataset],
        outputs: list[OutputDataset],
    ) -> RunEvent:
        facets = dict(self._run_facets)
        if error is not None:
            trace = "".join(traceback.format_exception(error))
            facets["errorMessage"] = ErrorMessageRunFacet(str(error), "Python", trace, producer=_PRODUCER)
        return RunEvent(
            eventTime=at,
            producer=_PRODUCER,
            run=Run(self._run_id, facets),
            job=self._job,
            eventType=state,
            inputs=inputs,
            outputs=outputs,
        )

    def _send_all(self) -> None:
        while (event := self._waiting.get()) is not None and not self._over:
            try:
                self._client.emit(event())
            except Exception:  # noqa: BLE001 - whatever its transport raises
                self._outages.failed()
            else:
                self._outages.succeeded()
        with contextlib.suppress(Exception):
            self._client.close(_CLOSE_S)  # its transport may have a connection, a producer or a thread


def _client(config: Configuration) -> OpenLineageClient:
    path = Path(config.telemetry.lineage_file)
    where = f"openlineage.integration.config.file.path: {path}"
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(given, dict) and "transport" in given:
            return OpenLineageClient(config=given)
    except OSError as error:
        raise TelemetryError(f"{where} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, RuntimeError, ImportError, yaml.YAMLError) as error:
        raise TelemetryError(f"{where} is not a configuration of OpenLineage's client: {error}") from None
    raise TelemetryError(f"{where} has no transport, such as transport: {{type: http, url: http://marquez:5000}}")


def _job(config: Configuration) -> Job:
    telemetry, prefix = config.telemetry, config.topics.prefix
    facets: dict[str, Any] = {
        "documentation": DocumentationJobFacet(telemetry.lineage_description, producer=_PRODUCER),
        "jobType": JobTypeJobFacet("STREAMING", "DEBEZIUM", "TASK", producer=_PRODUCER),
    }
    owners = [Owner(name, role) for name, role in _pairs(telemetry.lineage_owners)]
    tags = [TagsJobFacetFields(key, value, "CONFIG") for key, value in _pairs(telemetry.lineage_tags)]
    if owners:
        facets["ownership"] = OwnershipJobFacet(owners, producer=_PRODUCER)
    if tags:
        facets["tags"] = TagsJobFacet(tags, producer=_PRODUCER)
    return Job(telemetry.lineage_namespace or prefix, f"{prefix}.0", facets)


def _pairs(given: Iterable[str]) -> Iterator[tuple[str, str]]:
    for one in given:
        name, _, value = one.partition("=")
        yield name.strip(), value.strip()


def _facets(kind: str, fields: Sequence[SchemaDatasetFacetFields]) -> dict[str, Any]:
    found: dict[str, Any] = {"datasetType": DatasetTypeDatasetFacet(kind, "", producer=_PRODUCER)}
    if fields:
        found["schema"] = SchemaDatasetFacet(list(fields), producer=_PRODUCER)
    return found


def _columns(one: TableSchema, *, comments: bool) -> Iterator[SchemaDatasetFacetFields]:
    for column in one.table.columns:
        described = column.debezium
        kind = column.data_type.upper() if described is None else described.type_name
        comment = column.comment if comments and column.comment else None
        yield SchemaDatasetFacetFields(column.name, kind, comment, fields=None)


def _field(field: Field) -> SchemaDatasetFacetFields:
    schema = field.schema
    nested = [_field(one) for one in schema.fields]
    return SchemaDatasetFacetFields(field.name, schema.type.upper(), schema.doc, fields=nested or None)
