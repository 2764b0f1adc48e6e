"""The error codes of Kafka's protocol that a producer can get, and their meanings."""

import enum
from typing import Self


class ErrorCode(enum.IntEnum):
    """An error code, with Kafka's name.

    Attributes:
        meaning: its meaning, for messages to users.
    """

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    NONE = 0, "no error"
    UNKNOWN_SERVER_ERROR = -1, "an unexpected error in the broker; its log says more"
    CORRUPT_MESSAGE = 2, "the record batch has a wrong checksum: it was damaged in transit"
    UNKNOWN_TOPIC_OR_PARTITION = 3, "the broker does not have the topic or partition"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader: one is being elected"
    NOT_LEADER_OR_FOLLOWER = 6, "the broker no longer leads the partition"
    REQUEST_TIMED_OUT = 7, "the replicas did not acknowledge it in time"
    BROKER_NOT_AVAILABLE = 8, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, "a replica is not available"
    MESSAGE_TOO_LARGE = 10, "the record batch is larger than max.message.bytes of the topic allows"
    NETWORK_EXCEPTION = 13, "the broker lost a connection before it had an answer"
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is loading its transactions"
    COORDINATOR_NOT_AVAILABLE = 15, "the coordinator is not available"
    NOT_COORDINATOR = 16, "the broker is no longer the coordinator"
    INVALID_TOPIC_EXCEPTION = 17, "the topic's name is invalid, or it is internal"
    RECORD_LIST_TOO_LARGE = 18, "the record batch is larger than segment.bytes of the topic allows"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than min.insync.replicas requires"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "it was written, but to fewer replicas than min.insync.replicas requires"
    INVALID_REQUIRED_ACKS = 21, "the broker does not support this value of acks"
    TOPIC_AUTHORIZATION_FAILED = 29, "the user may not write to the topic"
    CLUSTER_AUTHORIZATION_FAILED = 31, "the user may not do this in the cluster"
    INVALID_TIMESTAMP = 32, "a record's time is too far from the broker's (message.timestamp.after.max.ms, …before…)"
    UNSUPPORTED_SASL_MECHANISM = 33, "the broker does not support the SASL mechanism on this listener"
    ILLEGAL_SASL_STATE = 34, "the broker did not expect the request at this point of the login"
    UNSUPPORTED_VERSION = 35, "the broker does not support this version of the request"
    INVALID_REQUEST = 42, "the broker cannot use the request; its log says more"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the topic's message format is too old for idempotent records"
    POLICY_VIOLATION = 44, "a policy of the broker forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "records of this producer that came before are missing on the broker"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the broker has the records already"
    INVALID_PRODUCER_EPOCH = 47, "the producer has a later epoch"
    INVALID_TXN_STATE = 48, "the transaction is in a state that does not allow it"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer id does not belong to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "transaction.timeout.ms is longer than transaction.max.timeout.ms of the broker"
    CONCURRENT_TRANSACTIONS = 51, "the previous transaction has not ended yet"
    TRANSACTION_COORDINATOR_FENCED = 52, "the transaction has a newer coordinator"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "the user may not use the transactional id"
    SECURITY_DISABLED = 54, "authorization is off on the broker"
    OPERATION_NOT_ATTEMPTED = 55, "the broker did not try it, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the broker's disk failed"
    SASL_AUTHENTICATION_FAILED = 58, "the broker refused the credentials"
    UNKNOWN_PRODUCER_ID = 59, "the broker no longer has records of this producer id"
    LISTENER_NOT_FOUND = 72, "the leader has no listener of the same name as this one"
    FENCED_LEADER_EPOCH = 74, "the partition has a newer leader"
    UNKNOWN_LEADER_EPOCH = 75, "the broker's metadata is older"
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the broker does not support this compression.type"
    INVALID_RECORD = 87, "the broker's checks refused a record"
    THROTTLING_QUOTA_EXCEEDED = 89, "a quota is exceeded"
    PRODUCER_FENCED = 90, "a newer producer has the same transactional id"
    UNKNOWN_TOPIC_ID = 100, "the broker has no topic with this id"
    INCONSISTENT_TOPIC_ID = 103, "the partition belongs to a topic with another id"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "the transactional id has no state"
    TRANSACTION_ABORTABLE = 120, "the transaction failed and must be aborted; the next one may succeed"
    REBOOTSTRAP_REQUIRED = 129, "the metadata is too old: connect to bootstrap.servers again"


_KNOWN = {int(code): code for code in ErrorCode}


def code_name(code: int) -> str:
    """Return Kafka's name of a code, even of one that a producer should not get."""
    return _KNOWN[code].name if code in _KNOWN else f"error code {code}"


def code_text(code: int) -> str:
    """Return name, number and meaning of a code, even of one that a producer should not get."""
    if code not in _KNOWN:
        return f"{code_name(code)}, which no producer should get"
    return f"{code_name(code)} ({code}): {_KNOWN[code].meaning}"
