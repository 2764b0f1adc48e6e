"""CRC-32C, the checksum of record batches (RFC 3720, appendix B.4). Pure."""

from rowtide.connector.kafka_producer.batches.native.implementation import native

_REVERSED_POLYNOMIAL = 0x82F63B78


def _after_byte(byte: int) -> int:
    for _bit in range(8):
        byte = byte >> 1 ^ (_REVERSED_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = [_after_byte(byte) for byte in range(256)]


def python_crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the checksum of bytes."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in memoryview(data):
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


crc32c = python_crc32c if native is None else native.crc32c
