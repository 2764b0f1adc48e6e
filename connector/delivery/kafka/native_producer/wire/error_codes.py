"""The error codes of Kafka's protocol that a producer can get, what they mean, and what helps."""

import enum
from dataclasses import dataclass


class Remedy(enum.Enum):
    """What makes a request succeed that was refused with an error."""

    NONE = "none"
    """Nothing: the same request fails again."""
    RETRY = "retry"
    """To send it again later."""
    METADATA = "metadata"
    """To look up the leaders again, and to send it again later."""
    COORDINATOR = "coordinator"
    """To look up the coordinator again, and to send it again later."""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error code.

    Attributes:
        name: Kafka's name, such as ``NOT_LEADER_OR_FOLLOWER``.
        meaning: what it says, for messages to users.
    """

    code: int
    name: str
    meaning: str
    remedy: Remedy = Remedy.NONE

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.remedy is not Remedy.NONE

    def __str__(self) -> str:
        return f"{self.name} ({self.code}): {self.meaning}"


NONE = ErrorCode(0, "NONE", "no error")
UNKNOWN_SERVER_ERROR = ErrorCode(-1, "UNKNOWN_SERVER_ERROR", "an unexpected error of the broker; its log says more")
CORRUPT_MESSAGE = ErrorCode(
    2, "CORRUPT_MESSAGE", "the record batch does not have its checksum: it was damaged on its way", Remedy.RETRY
)
UNKNOWN_TOPIC_OR_PARTITION = ErrorCode(
    3, "UNKNOWN_TOPIC_OR_PARTITION", "the broker does not have the topic or partition", Remedy.METADATA
)
LEADER_NOT_AVAILABLE = ErrorCode(
    5, "LEADER_NOT_AVAILABLE", "the partition has no leader: one is being elected", Remedy.METADATA
)
NOT_LEADER_OR_FOLLOWER = ErrorCode(
    6, "NOT_LEADER_OR_FOLLOWER", "the broker does not lead the partition any more", Remedy.METADATA
)
REQUEST_TIMED_OUT = ErrorCode(7, "REQUEST_TIMED_OUT", "the replicas did not acknowledge it in time", Remedy.RETRY)
BROKER_NOT_AVAILABLE = ErrorCode(8, "BROKER_NOT_AVAILABLE", "the broker is not available")
REPLICA_NOT_AVAILABLE = ErrorCode(9, "REPLICA_NOT_AVAILABLE", "a replica is not available", Remedy.METADATA)
MESSAGE_TOO_LARGE = ErrorCode(
    10, "MESSAGE_TOO_LARGE", "the record batch is larger than max.message.bytes of the topic allows"
)
NETWORK_EXCEPTION = ErrorCode(
    13, "NETWORK_EXCEPTION", "the broker lost a connection before it had an answer", Remedy.METADATA
)
COORDINATOR_LOAD_IN_PROGRESS = ErrorCode(
    14, "COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is loading its transactions", Remedy.RETRY
)
COORDINATOR_NOT_AVAILABLE = ErrorCode(
    15, "COORDINATOR_NOT_AVAILABLE", "the coordinator is not available", Remedy.COORDINATOR
)
NOT_COORDINATOR = ErrorCode(16, "NOT_COORDINATOR", "the broker is not the coordinator any more", Remedy.COORDINATOR)
INVALID_TOPIC_EXCEPTION = ErrorCode(17, "INVALID_TOPIC_EXCEPTION", "the topic's name is invalid, or it is internal")
RECORD_LIST_TOO_LARGE = ErrorCode(
    18, "RECORD_LIST_TOO_LARGE", "the record batch is larger than segment.bytes of the topic allows"
)
NOT_ENOUGH_REPLICAS = ErrorCode(
    19, "NOT_ENOUGH_REPLICAS", "fewer replicas are in sync than min.insync.replicas requires", Remedy.RETRY
)
NOT_ENOUGH_REPLICAS_AFTER_APPEND = ErrorCode(
    20,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "it was written, but to fewer replicas than min.insync.replicas requires",
    Remedy.RETRY,
)
INVALID_REQUIRED_ACKS = ErrorCode(21, "INVALID_REQUIRED_ACKS", "the broker does not have this value of acks")
TOPIC_AUTHORIZATION_FAILED = ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", "the user may not write to the topic")
CLUSTER_AUTHORIZATION_FAILED = ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", "the user may not do this in the cluster")
INVALID_TIMESTAMP = ErrorCode(
    32, "INVALID_TIMESTAMP", "a record's time is too far from the broker's (message.timestamp.after.max.ms, …before…)"
)
UNSUPPORTED_SASL_MECHANISM = ErrorCode(
    33, "UNSUPPORTED_SASL_MECHANISM", "the broker does not have the SASL mechanism on this listener"
)
ILLEGAL_SASL_STATE = ErrorCode(
    34, "ILLEGAL_SASL_STATE", "the broker did not expect the request at this point of the login"
)
UNSUPPORTED_VERSION = ErrorCode(35, "UNSUPPORTED_VERSION", "the broker does not have this version of the request")
INVALID_REQUEST = ErrorCode(42, "INVALID_REQUEST", "the broker cannot use the request; its log says more")
UNSUPPORTED_FOR_MESSAGE_FORMAT = ErrorCode(
    43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "the topic's message format is too old for idempotent records"
)
POLICY_VIOLATION = ErrorCode(44, "POLICY_VIOLATION", "a policy of the broker forbids it")
OUT_OF_ORDER_SEQUENCE_NUMBER = ErrorCode(
    45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "records of this producer that came before are missing on the broker"
)
DUPLICATE_SEQUENCE_NUMBER = ErrorCode(46, "DUPLICATE_SEQUENCE_NUMBER", "the broker has the records already")
INVALID_PRODUCER_EPOCH = ErrorCode(47, "INVALID_PRODUCER_EPOCH", "the producer has a later epoch")
INVALID_TXN_STATE = ErrorCode(48, "INVALID_TXN_STATE", "the transaction is not in a state for it")
INVALID_PRODUCER_ID_MAPPING = ErrorCode(
    49, "INVALID_PRODUCER_ID_MAPPING", "the producer id does not belong to the transactional id"
)
INVALID_TRANSACTION_TIMEOUT = ErrorCode(
    50, "INVALID_TRANSACTION_TIMEOUT", "transaction.timeout.ms is longer than transaction.max.timeout.ms of the broker"
)
CONCURRENT_TRANSACTIONS = ErrorCode(
    51, "CONCURRENT_TRANSACTIONS", "the previous transaction has not ended yet", Remedy.RETRY
)
TRANSACTION_COORDINATOR_FENCED = ErrorCode(
    52, "TRANSACTION_COORDINATOR_FENCED", "the transaction has a newer coordinator"
)
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = ErrorCode(
    53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "the user may not use the transactional id"
)
SECURITY_DISABLED = ErrorCode(54, "SECURITY_DISABLED", "the broker has no authorization")
OPERATION_NOT_ATTEMPTED = ErrorCode(
    55, "OPERATION_NOT_ATTEMPTED", "the broker did not try it, because another part of the request failed"
)
KAFKA_STORAGE_ERROR = ErrorCode(56, "KAFKA_STORAGE_ERROR", "the broker's disk failed", Remedy.METADATA)
SASL_AUTHENTICATION_FAILED = ErrorCode(58, "SASL_AUTHENTICATION_FAILED", "the broker refused the credentials")
UNKNOWN_PRODUCER_ID = ErrorCode(59, "UNKNOWN_PRODUCER_ID", "the broker has no records of this producer id any more")
LISTENER_NOT_FOUND = ErrorCode(
    72, "LISTENER_NOT_FOUND", "the leader has no listener of the same name as this one", Remedy.METADATA
)
FENCED_LEADER_EPOCH = ErrorCode(74, "FENCED_LEADER_EPOCH", "the partition has a newer leader", Remedy.METADATA)
UNKNOWN_LEADER_EPOCH = ErrorCode(75, "UNKNOWN_LEADER_EPOCH", "the broker's metadata is older", Remedy.RETRY)
UNSUPPORTED_COMPRESSION_TYPE = ErrorCode(
    76, "UNSUPPORTED_COMPRESSION_TYPE", "the broker does not have this compression.type"
)
INVALID_RECORD = ErrorCode(87, "INVALID_RECORD", "the broker's checks refused a record")
THROTTLING_QUOTA_EXCEEDED = ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", "a quota is exceeded", Remedy.RETRY)
PRODUCER_FENCED = ErrorCode(90, "PRODUCER_FENCED", "a newer producer has the same transactional id")
UNKNOWN_TOPIC_ID = ErrorCode(100, "UNKNOWN_TOPIC_ID", "the broker has no topic with this id", Remedy.METADATA)
INCONSISTENT_TOPIC_ID = ErrorCode(
    103, "INCONSISTENT_TOPIC_ID", "the partition belongs to a topic with another id", Remedy.METADATA
)
TRANSACTIONAL_ID_NOT_FOUND = ErrorCode(105, "TRANSACTIONAL_ID_NOT_FOUND", "the transactional id has no state")
TRANSACTION_ABORTABLE = ErrorCode(
    120, "TRANSACTION_ABORTABLE", "the transaction failed and must be aborted; the next one may succeed"
)
REBOOTSTRAP_REQUIRED = ErrorCode(
    129, "REBOOTSTRAP_REQUIRED", "the metadata is too old: connect to bootstrap.servers again"
)

_ALL = {value.code: value for value in list(globals().values()) if isinstance(value, ErrorCode)}


def error_of(code: int) -> ErrorCode:
    """The error with a code; one without a remedy for a code that a producer should not get."""
    return _ALL.get(code) or ErrorCode(code, "UNEXPECTED", "a code that no producer should get")
