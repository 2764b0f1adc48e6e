"""Estimates the compression ratio of a topic's records like Java's ``CompressionRatioEstimator``. Pure."""

_IMPROVEMENT = 0.005
_DETERIORATION = 0.05
_MARGIN = 1.05
"""``COMPRESSION_RATE_ESTIMATION_FACTOR`` of Java's ``MemoryRecordsBuilder``."""


class CompressionRatio:
    """The estimated ratio of compressed to uncompressed bytes of one topic. It rises fast and falls slowly.

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
