"""The APIs of Kafka's protocol that a producer uses, and the versions that rowtide and a broker have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.connector.kafka_producer.wire.errors import UnsupportedBroker
from rowtide.connector.kafka_producer.wire.messages import cluster, opening, produce, transactions
from rowtide.connector.kafka_producer.wire.messages.topic_batches import TopicBatches
from rowtide.connector.kafka_producer.wire.schema import NEVER, Request


@dataclass(frozen=True, slots=True)
class Api:
    """An API: a request and its answer.

    Attributes:
        key: its number.
        lowest: the lowest version that rowtide uses.
        highest: the highest one.
        flexible_since: the first version with compact lengths and tagged fields (KIP-482).
        plain_answer_header: whether the header of the answer has no tagged fields in any version. So it is for
            ApiVersions, since the client does not know yet which versions the broker has (KIP-511).
    """

    name: str
    key: int
    lowest: int
    highest: int
    flexible_since: int
    request: type
    answer: type
    plain_answer_header: bool = False

    def flexible(self, version: int) -> bool:
        """Return whether a version has compact lengths and tagged fields."""
        return version >= self.flexible_since


PRODUCE = Api("Produce", 0, 3, 13, 9, produce.ProduceRequest, produce.ProduceAnswer)
METADATA = Api("Metadata", 3, 4, 13, 9, cluster.MetadataRequest, cluster.MetadataAnswer)
FIND_COORDINATOR = Api("FindCoordinator", 10, 1, 6, 3, cluster.FindCoordinatorRequest, cluster.FindCoordinatorAnswer)
SASL_HANDSHAKE = Api("SaslHandshake", 17, 1, 1, NEVER, opening.SaslHandshakeRequest, opening.SaslHandshakeAnswer)
API_VERSIONS = Api(
    "ApiVersions", 18, 0, 4, 3, opening.ApiVersionsRequest, opening.ApiVersionsAnswer, plain_answer_header=True
)
INIT_PRODUCER_ID = Api(
    "InitProducerId", 22, 0, 5, 2, transactions.InitProducerIdRequest, transactions.InitProducerIdAnswer
)
ADD_PARTITIONS_TO_TXN = Api(
    "AddPartitionsToTxn", 24, 0, 3, 3, transactions.AddPartitionsToTxnRequest, transactions.AddPartitionsToTxnAnswer
)
END_TXN = Api("EndTxn", 26, 0, 5, 3, transactions.EndTxnRequest, transactions.EndTxnAnswer)
SASL_AUTHENTICATE = Api(
    "SaslAuthenticate", 36, 0, 2, 2, opening.SaslAuthenticateRequest, opening.SaslAuthenticateAnswer
)

APIS = (
    PRODUCE,
    METADATA,
    FIND_COORDINATOR,
    SASL_HANDSHAKE,
    API_VERSIONS,
    INIT_PRODUCER_ID,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    SASL_AUTHENTICATE,
)
"""All APIs. The lowest versions are those of Kafka 1.0.

AddPartitionsToTxn has more versions for brokers, and InitProducerId has one for two-phase commits.
"""

_BY_REQUEST = {**{api.request: api for api in APIS}, TopicBatches: PRODUCE}


def api_of(request: Request[Any]) -> Api:
    """Return the API of a request."""
    return _BY_REQUEST[type(request)]


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """The versions of each API that a broker supports, and the features that are enabled in its cluster.

    Attributes:
        ranges: the lowest and the highest version, by the number of the API.
        features: the level of each feature; a feature that is off is absent.
    """

    ranges: Mapping[int, tuple[int, int]]
    features: Mapping[str, int]

    @classmethod
    def of(cls, answer: opening.ApiVersionsAnswer) -> "BrokerVersions":
        """Return the versions and features in an answer."""
        return cls(
            {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys},
            {one.name: one.max_version_level for one in answer.finalized_features},
        )

    @property
    def transactions_v2(self) -> bool:
        """Whether the cluster has transactions of version 2 (KIP-890)."""
        return self.features.get("transaction.version", 0) >= 2

    def version(self, api: Api, at_most: int = NEVER) -> int:
        """Return the highest version of an API that both have.

        Args:
            api: the API.
            at_most: a limit for this request; producers without transactions of version 2 must not use version 12 of
                Produce in a transaction.

        Raises:
            UnsupportedBroker: there is none.
        """
        if api.key not in self.ranges:
            raise UnsupportedBroker(f"the broker does not support the API {api.name}, which Kafka 1.0 introduced")
        lowest, highest = self.ranges[api.key]
        version = min(api.highest, highest, at_most)
        if version < max(api.lowest, lowest):
            raise UnsupportedBroker(
                f"the broker has the versions {lowest} to {highest} of {api.name}, rowtide has {api.lowest} to "
                f"{min(api.highest, at_most)}"
            )
        return version
