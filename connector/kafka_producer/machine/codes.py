"""The reaction of the machine to each error code in the answer to each kind of request.

A code that is in no table ends the producer: nothing is ever assumed about an unknown answer.
"""

import enum
from collections.abc import Mapping

from rowtide.connector.kafka_producer.errors import Rejection
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode


class Reaction(enum.Enum):
    """The reaction of the machine to a code."""

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
    """The transaction must be aborted; the producer can continue."""
    FAIL = enum.auto()


_COMMON: Mapping[int, Reaction] = {
    ErrorCode.NONE: Reaction.SUCCESS,
    ErrorCode.REQUEST_TIMED_OUT: Reaction.RETRY,
    ErrorCode.NETWORK_EXCEPTION: Reaction.RETRY,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Reaction.RETRY,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Reaction.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.NOT_COORDINATOR: Reaction.REFRESH,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.DENIED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Reaction.DENIED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.DENIED,
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    ErrorCode.PRODUCER_FENCED: Reaction.FENCED,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: Reaction.FENCED,
    ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORTABLE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.ABORTABLE,
}

COORDINATION: Mapping[int, Reaction] = {
    **_COMMON,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    ErrorCode.LEADER_NOT_AVAILABLE: Reaction.RETRY,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.RETRY,
}
"""For InitProducerId, FindCoordinator, AddPartitionsToTxn and EndTxn."""

PRODUCE: Mapping[int, Reaction] = {
    **_COMMON,
    ErrorCode.REQUEST_TIMED_OUT: Reaction.REFRESH,  # if the leader is cut off, there is another one by now
    ErrorCode.NOT_ENOUGH_REPLICAS: Reaction.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Reaction.RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Reaction.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Reaction.REFRESH,
    ErrorCode.LISTENER_NOT_FOUND: Reaction.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Reaction.REFRESH,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Reaction.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.REFRESH,
    ErrorCode.INCONSISTENT_TOPIC_ID: Reaction.REFRESH,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Reaction.DUPLICATE,
    ErrorCode.MESSAGE_TOO_LARGE: Reaction.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: Reaction.SPLIT,
    ErrorCode.INVALID_RECORD: Reaction.REFUSED,
    ErrorCode.INVALID_TIMESTAMP: Reaction.REFUSED,
    ErrorCode.INVALID_TOPIC_EXCEPTION: Reaction.REFUSED,
    ErrorCode.POLICY_VIOLATION: Reaction.REFUSED,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction.REFUSED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: Reaction.REFUSED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.REFUSED,
}
"""For each batch of Produce."""

METADATA: Mapping[int, Reaction] = {
    **_COMMON,
    ErrorCode.LEADER_NOT_AVAILABLE: Reaction.RETRY,
    ErrorCode.LISTENER_NOT_FOUND: Reaction.RETRY,
    ErrorCode.REPLICA_NOT_AVAILABLE: Reaction.SUCCESS,  # a replica other than the leader is down
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
    ErrorCode.INVALID_TOPIC_EXCEPTION: Reaction.REFUSED,
}
"""For each topic and partition of Metadata."""

REJECTIONS: Mapping[int, Rejection] = {
    ErrorCode.MESSAGE_TOO_LARGE: Rejection.TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE: Rejection.TOO_LARGE,
    ErrorCode.INVALID_RECORD: Rejection.INVALID,
    ErrorCode.INVALID_TIMESTAMP: Rejection.INVALID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Rejection.DENIED,
}
"""The reasons for rejected records; codes that are not listed are ``OTHER``."""
