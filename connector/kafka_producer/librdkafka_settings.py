"""Determines which of librdkafka's settings the producer supports. Pure.

A setting that affects records or connections, and that only librdkafka supports, must not be dropped
silently. Other settings of librdkafka tune or describe its internals, and have no effect.
"""

from collections.abc import Iterator, Mapping
from typing import Any

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The values of ``sasl.mechanism``."""

ONLY_LIBRDKAFKA = frozenset(
    {
        "enable.sasl.oauthbearer.unsecure.jwt",
        "https.ca.location",
        "https.ca.pem",
        "plugin.library.paths",
        "sasl.kerberos.keytab",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.metadata.authentication.type",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.ca.certificate.stores",
        "ssl.curves.list",
        "ssl.engine.id",
        "ssl.engine.location",
        "ssl.providers",
        "ssl.sigalgs.list",
    }
)
"""Settings that only librdkafka has."""

_ONLY_VALUE = {
    "client.dns.lookup": "use_all_dns_ips",
    "partitioner": "murmur2_random",
    "queuing.strategy": "fifo",
}
"""Settings for which only librdkafka has other values."""

WITHOUT_EFFECT = frozenset(
    {
        "api.version.fallback.ms",
        "api.version.request",
        "api.version.request.timeout.ms",
        "batch.num.messages",
        "broker.address.ttl",
        "broker.version.fallback",
        "client.rack",
        "debug",
        "delivery.report.only.error",
        "enable.gapless.guarantee",
        "enable.metrics.push",
        "enable.random.seed",
        "log.connection.close",
        "log.thread.name",
        "log_level",
        "message.copy.max.bytes",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "produce.offset.report",
        "queue.buffering.backpressure.threshold",
        "reconnect.backoff.jitter.ms",
        "retries",  # messages are sent again until delivery.timeout.ms
        "socket.blocking.max.ms",
        "socket.max.fails",
        "statistics.interval.ms",
        "sticky.partitioning.linger.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.sparse",
    }
)
"""Settings that affect neither the records nor the connections to brokers."""


def unsupported(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each setting that only librdkafka supports, and its problem.

    Args:
        settings: with librdkafka's names, without synonyms.
    """
    if str(settings.get("security.protocol", "")).lower().startswith("sasl_"):
        mechanism = str(settings.get("sasl.mechanism", "GSSAPI")).upper()
        if mechanism not in MECHANISMS:
            yield "sasl.mechanism", f"rowtide's own producer supports {', '.join(MECHANISMS)}, not {mechanism}"
    for name in sorted(ONLY_LIBRDKAFKA & settings.keys()):
        yield name, "is a setting of librdkafka that rowtide's own producer does not support"
    for name, value in _ONLY_VALUE.items():
        given = str(settings.get(name, value)).strip()
        if given.lower() != value:
            yield name, f"rowtide's own producer only supports {value}, not {given}"
