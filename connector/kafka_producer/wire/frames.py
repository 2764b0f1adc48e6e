"""Requests and answers as they are sent: a length, a header with a correlation id, and the message.

::

    request: int32 length │ int16 API │ int16 version │ int32 correlation id │ client id │ (tagged fields) │ message
    answer:  int32 length │ int32 correlation id │ (tagged fields) │ message
"""

import struct
from typing import Any, NamedTuple

from rowtide.connector.kafka_producer.wire.apis import API_VERSIONS, Api, api_of
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer, NotEncodable
from rowtide.connector.kafka_producer.wire.messages.topic_batches import TopicBatches, stored
from rowtide.connector.kafka_producer.wire.primitives import Bytes, Reader, Writer, string
from rowtide.connector.kafka_producer.wire.schema import Request, codec, read_all

_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">hhi")
_FIRST_BUFFER = 1 << 16
_LONGEST_REQUEST = (1 << 31) - 1
_CLIENT_ID = string(flexible=False, nullable=True)


class SentRequest(NamedTuple):
    """The data that is needed to read the answer to a request.

    Attributes:
        api: the API.
        version: its version.
        correlation_id: of the request.
        by_topic: whether the request was :class:`TopicBatches`, which may be answered by ``Stored``.
    """

    api: Api
    version: int
    correlation_id: int
    by_topic: bool = False

    def __str__(self) -> str:
        return f"{self.api.name} request {self.correlation_id} of version {self.version}"


def encode_request(
    request: Request[Any], version: int, correlation_id: int, client_id: str | None
) -> tuple[SentRequest, list[Bytes]]:
    """Return the bytes of a request, as parts to be sent one after another.

    Record batches are parts that were not copied.

    Raises:
        NotEncodable: the request does not fit the version.
    """
    api = api_of(request)
    by_topic = isinstance(request, TopicBatches) and api.flexible(version)
    sent = SentRequest(api, version, correlation_id, by_topic)
    if not api.lowest <= version <= api.highest:
        raise NotEncodable(f"{sent}: the version is not one of {api.lowest} to {api.highest}")
    try:
        parts = _parts(sent, request, client_id)
    except NotEncodable as error:
        raise NotEncodable(f"{sent}: {error}") from None
    size = sum(map(len, parts))
    if size > _LONGEST_REQUEST:
        raise NotEncodable(f"{sent}: {size} bytes are longer than a request may be")
    return sent, [_LENGTH.pack(size) + bytes(parts[0]), *parts[1:]]


def _parts(sent: SentRequest, request: Request[Any], client_id: str | None) -> list[Bytes]:
    api, version, flexible = sent.api, sent.version, sent.api.flexible(sent.version)
    if isinstance(request, TopicBatches):
        if sent.by_topic:
            return request.parts(version, sent.correlation_id, client_id)
        request = request.declared()
    writer = Writer()
    writer.add(_HEADER.pack(api.key, version, sent.correlation_id))
    _CLIENT_ID.write(writer, client_id)
    if flexible:
        writer.uvarint(0)  # no tagged fields
    codec(api.request, version, flexible=flexible).write(writer, request)
    return writer.parts()


def decode_answer(sent: SentRequest, frame: Bytes) -> Any:
    """Return the answer to a request, in the class that the request's API names, or ``Stored``.

    An answer to ApiVersions with the error UNSUPPORTED_VERSION has the form of version 0 (KIP-511).

    Raises:
        MalformedAnswer: it belongs to another request, or does not have the form of the version.
    """
    if sent.by_topic:
        found = stored(frame, sent.version, sent.correlation_id)
        if found is not None:
            return found
    try:
        body = _body(sent, Reader(frame))
        version = sent.version
        if sent.api is API_VERSIONS and body[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            version = 0
        return read_all(codec(sent.api.answer, version, flexible=sent.api.flexible(version)), body)
    except MalformedAnswer as error:
        raise MalformedAnswer(f"the response to {sent} is malformed: {error}") from None


def _body(sent: SentRequest, reader: Reader) -> memoryview:
    """Return the body of an answer, after its header."""
    correlation_id = reader.number(_LENGTH)
    if correlation_id != sent.correlation_id:
        raise MalformedAnswer(f"it has the correlation id {correlation_id}")
    if sent.api.flexible(sent.version) and not sent.api.plain_answer_header:
        for _ in range(reader.uvarint()):
            reader.uvarint()
            reader.take(reader.uvarint())
    return reader.take(reader.left)


class FrameReader:
    """Cuts the bytes of a connection into answers, without input and output: bytes are received into its buffer.

    The buffer grows with the received bytes, so a length alone allocates no memory.

    Args:
        limit: the maximum length of an answer in bytes (``receive.message.max.bytes``).
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._size: int | None = None
        self._buffer = bytearray(_LENGTH.size)
        self._filled = 0

    def space(self) -> memoryview:
        """Return the buffer for the next bytes; never empty, and never longer than the missing part of the answer."""
        return memoryview(self._buffer)[self._filled :]

    def received(self, count: int) -> bytearray | None:
        """Process the bytes in :meth:`space`; return an answer that is complete, without its length.

        Raises:
            MalformedAnswer: the length is negative, too small for a header or greater than the limit.
        """
        self._filled += count
        if self._filled < len(self._buffer):
            return None
        if self._size is None:
            size = _LENGTH.unpack(self._buffer)[0]
            if not _LENGTH.size <= size <= self._limit:
                raise MalformedAnswer(
                    f"a response of {size} bytes is announced, but the limit (receive.message.max.bytes) is "
                    f"{self._limit}"
                )
            self._size, self._filled, self._buffer = size, 0, bytearray(min(size, _FIRST_BUFFER))
            return None
        if self._filled < self._size:
            self._buffer = self._buffer + bytes(min(len(self._buffer), self._size - self._filled))
            return None
        frame = self._buffer
        self._start()
        return frame
