"""Errors that clients receive as answers, with the texts of Canal's server.

Clients print the texts and compare only the codes, but people search the web for these texts.
"""

BAD_REQUEST = 400
MISSING_CLIENT = 401
MISSING_BATCH = 402

_SERVER = "com.alibaba.otter.canal.server.exception.CanalServerException"
_META = "com.alibaba.otter.canal.meta.exception.CanalMetaManagerException"


class CanalError(Exception):
    """A request that cannot be handled.

    Attributes:
        java_class: the exception that Canal's server names for it.
    """

    java_class = _SERVER


class BatchOrderError(CanalError):
    """The batch to acknowledge or roll back is not the oldest one."""

    java_class = _META


class ClientIdError(CanalError):
    """A client id is not a number."""

    java_class = "java.lang.NumberFormatException"


class MessageError(CanalError):
    """The body of a packet is not the message that its type asks for."""

    java_class = "com.google.protobuf.InvalidProtocolBufferException"


def failure_text(channel: str, error: CanalError) -> str:
    """Return the message of an answer with code 400.

    Args:
        channel: the connection, as in ``[id: 0x0e944066, /127.0.0.1:48566 => /127.0.0.1:11111]``.
        error: the failure.
    """
    return f"something goes wrong with channel:{channel}, exception={error.java_class}: {error}\n"
