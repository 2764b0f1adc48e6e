"""Kafka's error codes, and what the machine does about each in the answer to each kind of request.

A code that is in no table ends the producer: nothing is ever assumed about an unknown answer.
"""

import enum
from collections.abc import Mapping

from rowtide.connector.delivery.kafka.refusals import Refusal


class Code(enum.IntEnum):
    """The codes that the machine distinguishes, with the protocol's names."""

    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    UNKNOWN_PRODUCER_ID = 59
    LISTENER_NOT_FOUND = 72
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    TRANSACTION_ABORTABLE = 120


class Reaction(enum.Enum):
    """What the machine does about a code."""

    SUCCESS = enum.auto()
    DUPLICATE = enum.auto()
    """The broker has the batch already: a success, if it may have come with an earlier attempt."""
    RETRY = enum.auto()
    REFRESH = enum.auto()
    """Look up the leader, or the coordinator, and try again."""
    SPLIT = enum.auto()
    REFUSED = enum.auto()
    DENIED = enum.auto()
    FENCED = enum.auto()
    ABORTABLE = enum.auto()
    """The transaction must be aborted; the producer can go on."""
    FAIL = enum.auto()


_COMMON: Mapping[int, Reaction] = {
    Code.NONE: Reaction.SUCCESS,
    Code.REQUEST_TIMED_OUT: Reaction.RETRY,
    Code.NETWORK_EXCEPTION: Reaction.RETRY,
    Code.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    Code.CONCURRENT_TRANSACTIONS: Reaction.RETRY,
    Code.THROTTLING_QUOTA_EXCEEDED: Reaction.RETRY,
    Code.COORDINATOR_NOT_AVAILABLE: Reaction.REFRESH,
    Code.NOT_COORDINATOR: Reaction.REFRESH,
    Code.TOPIC_AUTHORIZATION_FAILED: Reaction.DENIED,
    Code.CLUSTER_AUTHORIZATION_FAILED: Reaction.DENIED,
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.DENIED,
    Code.INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    Code.PRODUCER_FENCED: Reaction.FENCED,
    Code.TRANSACTION_COORDINATOR_FENCED: Reaction.FENCED,
    Code.TRANSACTION_ABORTABLE: Reaction.ABORTABLE,
}

COORDINATION: Mapping[int, Reaction] = {
    **_COMMON,
    Code.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    Code.LEADER_NOT_AVAILABLE: Reaction.RETRY,
    Code.OPERATION_NOT_ATTEMPTED: Reaction.RETRY,
}
"""For InitProducerId, FindCoordinator, AddPartitionsToTxn and EndTxn."""

PRODUCE: Mapping[int, Reaction] = {
    **_COMMON,
    Code.NOT_ENOUGH_REPLICAS: Reaction.RETRY,
    Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Reaction.RETRY,
    Code.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH,
    Code.LEADER_NOT_AVAILABLE: Reaction.REFRESH,
    Code.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH,
    Code.REPLICA_NOT_AVAILABLE: Reaction.REFRESH,
    Code.KAFKA_STORAGE_ERROR: Reaction.REFRESH,
    Code.LISTENER_NOT_FOUND: Reaction.REFRESH,
    Code.FENCED_LEADER_EPOCH: Reaction.REFRESH,
    Code.UNKNOWN_LEADER_EPOCH: Reaction.REFRESH,
    Code.UNKNOWN_TOPIC_ID: Reaction.REFRESH,
    Code.INCONSISTENT_TOPIC_ID: Reaction.REFRESH,
    Code.DUPLICATE_SEQUENCE_NUMBER: Reaction.DUPLICATE,
    Code.MESSAGE_TOO_LARGE: Reaction.SPLIT,
    Code.RECORD_LIST_TOO_LARGE: Reaction.SPLIT,
    Code.INVALID_RECORD: Reaction.REFUSED,
    Code.INVALID_TIMESTAMP: Reaction.REFUSED,
    Code.INVALID_TOPIC_EXCEPTION: Reaction.REFUSED,
    Code.POLICY_VIOLATION: Reaction.REFUSED,
    Code.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction.REFUSED,
    Code.UNSUPPORTED_COMPRESSION_TYPE: Reaction.REFUSED,
    Code.TOPIC_AUTHORIZATION_FAILED: Reaction.REFUSED,
}
"""For each batch of Produce."""

METADATA: Mapping[int, Reaction] = {
    **_COMMON,
    Code.LEADER_NOT_AVAILABLE: Reaction.RETRY,
    Code.LISTENER_NOT_FOUND: Reaction.RETRY,
    Code.REPLICA_NOT_AVAILABLE: Reaction.SUCCESS,  # a replica other than the leader is down
    Code.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    Code.INVALID_TOPIC_EXCEPTION: Reaction.REFUSED,
}
"""For each topic and partition of Metadata."""

REFUSALS: Mapping[int, Refusal] = {
    Code.MESSAGE_TOO_LARGE: Refusal.TOO_LARGE,
    Code.RECORD_LIST_TOO_LARGE: Refusal.TOO_LARGE,
    Code.INVALID_RECORD: Refusal.INVALID,
    Code.INVALID_TIMESTAMP: Refusal.INVALID,
    Code.TOPIC_AUTHORIZATION_FAILED: Refusal.DENIED,
}
"""The remedies for refused records; codes that are not listed have none."""


def code_name(code: int) -> str:
    """The protocol's name of a code."""
    return Code(code).name if code in Code.__members__.values() else f"error code {code}"
