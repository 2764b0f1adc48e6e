"""The codecs of record batches, with the default levels of librdkafka, and the estimate of their compression ratio.

Libraries are imported when they are needed.

========  ======  ===============  ==================================================
codec     number  library          form
========  ======  ===============  ==================================================
none      0
gzip      1       zlib             RFC 1952
snappy    2       cramjam          one raw block, as librdkafka writes it
lz4       3       lz4              a frame of independent blocks, which Java requires
zstd      4       zstandard        a frame
========  ======  ===============  ==================================================
"""

import importlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_GZIP_WINDOW = 31
"""The largest window, with the header and trailer of gzip."""
_IMPROVEMENT = 0.005
_DETERIORATION = 0.05
_MARGIN = 1.05
"""``COMPRESSION_RATE_ESTIMATION_FACTOR`` of Java's ``MemoryRecordsBuilder``."""

Compress = Callable[[memoryview], bytes]
Decompress = Callable[[memoryview], bytes]


@dataclass(frozen=True, slots=True)
class Codec:
    """The compression of the records of a batch.

    Attributes:
        name: the value of ``compression.type``.
        number: its number in the attributes of a batch.
        compress: compresses records. Only one thread may call it at a time.
        decompress: the reverse; may be called from any thread.
    """

    name: str
    number: int
    compress: Compress
    decompress: Decompress


NONE = Codec("none", 0, bytes, bytes)


def codec(name: str, level: int | None = None) -> Codec:
    """Return the codec of a value of ``compression.type``. Each thread needs its own codec.

    Args:
        name: none, gzip, snappy, lz4 or zstd.
        level: the level of the compression, ``None`` for the codec's default; ``none`` and ``snappy`` have no levels.

    Raises:
        ValueError: the codec or level does not exist, or its library is missing.
    """
    if name == NONE.name:
        return NONE
    if name not in _CODECS:
        raise ValueError(f"compression.type={name} is not one of {', '.join((NONE.name, *_CODECS))}")
    number, levels, make = _CODECS[name]
    if levels and level is not None and level not in levels:
        raise ValueError(
            f"compression.level={level} is not a level of {name}: its levels are {levels.start} to {levels[-1]}"
        )
    return Codec(name, number, *make(level))


def _library(module: str, package: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ValueError(
            f"compression.type={name} needs the Python package {package}, which cannot be imported ({missing}): run "
            f"pip install {package}, or choose another compression.type"
        ) from missing


def _gzip(level: int | None) -> tuple[Compress, Decompress]:
    def compress(data: memoryview) -> bytes:
        compressor = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=_GZIP_WINDOW)
        return compressor.compress(data) + compressor.flush()

    def decompress(data: memoryview) -> bytes:
        return zlib.decompress(data, _GZIP_WINDOW)

    return compress, decompress


def _snappy(level: int | None) -> tuple[Compress, Decompress]:
    snappy = _library("cramjam", "cramjam", "snappy").snappy

    def compress(data: memoryview) -> bytes:
        return bytes(snappy.compress_raw(data))

    def decompress(data: memoryview) -> bytes:
        return bytes(snappy.decompress_raw(data))

    return compress, decompress


def _lz4(level: int | None) -> tuple[Compress, Decompress]:
    frame = _library("lz4.frame", "lz4", "lz4")

    def compress(data: memoryview) -> bytes:
        made: bytes = frame.compress(
            data,
            compression_level=level or 0,
            block_size=frame.BLOCKSIZE_MAX256KB,  # 64 KB, as Java has it, repeat the schema of JSON messages more often
            block_linked=False,
            store_size=False,
        )
        return made

    def decompress(data: memoryview) -> bytes:
        found: bytes = frame.decompress(data)
        return found

    return compress, decompress


def _zstd(level: int | None) -> tuple[Compress, Decompress]:
    zstandard = _library("zstandard", "zstandard", "zstd")
    compressor = zstandard.ZstdCompressor(level=3 if level is None else level)  # large: made once

    def compress(data: memoryview) -> bytes:
        made: bytes = compressor.compress(data)
        return made

    def decompress(data: memoryview) -> bytes:
        found: bytes = zstandard.ZstdDecompressor().decompress(data)
        return found

    return compress, decompress


_CODECS: dict[str, tuple[int, range, Callable[[int | None], tuple[Compress, Decompress]]]] = {
    "gzip": (1, range(10), _gzip),
    "snappy": (2, range(0), _snappy),
    "lz4": (3, range(18), _lz4),
    "zstd": (4, range(-131072, 23), _zstd),
}
"""Number, levels and functions. The levels are those of Java's producer, and 0, which librdkafka takes as well."""


class CompressionRatio:
    """The estimated ratio of compressed to uncompressed bytes of one topic, as Java's ``CompressionRatioEstimator``.

    It rises fast and falls slowly.

    Attributes:
        estimate: the ratio; 1 at the beginning.
    """

    def __init__(self) -> None:
        self.estimate = 1.0

    @property
    def factor(self) -> float:
        """The factor that converts the bytes of uncompressed records to the estimated bytes of their batch."""
        return self.estimate * _MARGIN

    def observe(self, ratio: float) -> None:
        """Correct the estimate by the ratio of a closed batch."""
        if ratio > self.estimate:
            self.estimate = max(self.estimate + _DETERIORATION, ratio)
        elif ratio < self.estimate:
            self.estimate = max(self.estimate - _IMPROVEMENT, ratio)

    def reset(self, ratio: float) -> None:
        """Start again, after a broker has refused a batch of this ratio because it was too large."""
        self.estimate = max(1.0, ratio)
