"""The outputs of one event, for tests that do not look at the steps between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtide.connector.records.batch import Output

if TYPE_CHECKING:
    from rowtide.connector.pipeline.pipeline import Pipeline

__all__ = ["received"]


def received(pipeline: Pipeline, packet: bytes) -> list[Output]:
    """Process an event completely, and return its outputs."""
    return [output for outputs in pipeline.receive(packet) for output in outputs]
