"""What a round of the campaign is made of, decided by its seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Scenario"]

_CHOICES = ("compressed", "small_files", "encrypted", "replica", "small_disks", "native_producer")
_DEBEZIUM = "io.debezium.transforms"
_TRANSFORMS: Mapping[str, Mapping[str, str]] = {
    "no transform": {},
    "flattened": {
        "transforms": "flatten",
        "transforms.flatten.type": f"{_DEBEZIUM}.ExtractNewRecordState",
        "transforms.flatten.delete.tombstone.handling.mode": "rewrite",
        "transforms.flatten.add.fields": "op,table,source.snapshot",
    },
    "routed": {
        "transforms": "route,outbox",
        "transforms.route.type": f"{_DEBEZIUM}.ByLogicalTableRouter",
        "transforms.route.topic.regex": r"(.*)\\.(?:accounts|entries)",
        "transforms.route.topic.replacement": "$1.all",
        "transforms.outbox.type": f"{_DEBEZIUM}.outbox.EventRouter",
        "transforms.outbox.predicate": "of_outbox",
        "predicates": "of_outbox",
        "predicates.of_outbox.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.of_outbox.pattern": r".*\\.outbox",
    },
}
_EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The servers and the configuration of a round.

    Attributes:
        flavor: ``mysql`` or ``mariadb``.
        seed: the seed of the round.
        exactly_once: whether records are delivered exactly once.
        gtids: whether the server has GTIDs; MariaDB always has.
        compressed: whether the server compresses the transactions (MariaDB: the row events) of its binlog.
        small_files: whether the server begins a new binlog file after 16 KiB.
        encrypted: whether the connections to the database and to Kafka use TLS.
        transform: ``no transform``, ``flattened``, or ``routed``: by table and by the outbox pattern.
        replica: whether a second server replicates, and can replace the first one.
        small_disks: whether Kafka, the database and the worker's offset file are on disks that can be full.
        rows_before: the rows of ``entries`` that the snapshot reads.
        native_producer: whether rowtide's own producer sends to Kafka, and not librdkafka.
    """

    flavor: str
    seed: int
    exactly_once: bool
    gtids: bool
    compressed: bool
    small_files: bool
    encrypted: bool
    transform: str
    replica: bool
    small_disks: bool
    rows_before: int
    native_producer: bool

    @classmethod
    def of(cls, flavor: str, seed: int) -> Scenario:
        """The scenario of a seed: odd seeds deliver exactly once."""
        decide = random.Random(f"{flavor} {seed}")
        gtids = flavor == "mariadb" or decide.random() < 0.6
        special = decide.choice(("replica", "small disks", "neither"))
        return cls(
            flavor=flavor,
            seed=seed,
            exactly_once=bool(seed % 2),
            gtids=gtids,
            compressed=decide.random() < 0.4,
            small_files=decide.random() < 0.3,
            encrypted=decide.random() < 0.5,
            transform=decide.choice(sorted(_TRANSFORMS)),
            replica=gtids and special == "replica",
            small_disks=special == "small disks",
            rows_before=decide.choice((0, 0, 40_000)),
            native_producer=decide.random() < 0.5,
        )

    def __str__(self) -> str:
        parts = [
            self.flavor,
            "exactly once" if self.exactly_once else "at least once",
            "with GTIDs" if self.gtids else "without GTIDs",
            self.transform,
            *(name.replace("_", " ") for name in _CHOICES if getattr(self, name)),
            f"{self.rows_before} rows before",
        ]
        return ", ".join(parts)

    def server_options(self) -> dict[str, str | int]:
        """The options of the servers."""
        options: dict[str, str | int] = {}
        if not self.gtids:
            options |= {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
        if self.small_files:
            options["max_binlog_size"] = 16384
        if self.compressed and self.flavor == "mysql":
            options["binlog_transaction_compression"] = "ON"
        elif self.compressed:
            options |= {"log_bin_compress": "ON", "log_bin_compress_min_len": 10}
        return options

    def properties(self) -> dict[str, str]:
        """The properties of the connector. Its time limits are short, so that a round has many faults."""
        return {
            "offset.flush.interval.ms": "300",
            "retriable.restart.connector.wait.ms": "500",
            "connect.timeout.ms": "3000",
            "connect.keep.alive.interval.ms": "2000",
            "database.query.timeout.ms": "20000",
            "database.ssl.mode": "required" if self.encrypted else "disabled",
            "request.timeout.ms": "5000",
            "max.queue.size": "600",
            "max.batch.size": "200",
            "schema.history.internal.compact.interval": "10",
            "rowtide.producer": "native" if self.native_producer else "librdkafka",
            **_TRANSFORMS[self.transform],
            **(_EXACTLY_ONCE if self.exactly_once else {}),
        }
