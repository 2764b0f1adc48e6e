"""The estimate of the compression, with the numbers of Java's CompressionRatioEstimatorTest."""

from __future__ import annotations

import pytest

from rowtide.connector.kafka_producer.batches.compression import CompressionRatio


@pytest.mark.parametrize(
    ("estimate", "observed", "expected"),
    [
        (0.8, 0.84, 0.85),  # rises by 0.05 at least
        (0.6, 0.7, 0.7),
        (0.6, 0.4, 0.595),  # falls by 0.005 at most
        (0.004, 0.001, 0.001),
        (0.5, 0.5, 0.5),
    ],
)
def test_the_estimate_follows_the_batches(estimate: float, observed: float, expected: float) -> None:
    ratio = CompressionRatio()
    ratio.estimate = estimate
    ratio.observe(observed)
    assert ratio.estimate == pytest.approx(expected)
    assert ratio.factor == pytest.approx(expected * 1.05)


def test_the_first_estimate_is_not_compression() -> None:
    assert CompressionRatio().estimate == 1


def test_a_batch_that_was_too_large_resets_the_estimate() -> None:
    ratio = CompressionRatio()
    ratio.observe(0.1)
    ratio.reset(0.1)
    assert ratio.estimate == 1
    ratio.reset(1.2)
    assert ratio.estimate == 1.2
