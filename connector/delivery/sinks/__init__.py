"""Sinks other than Kafka: standard output, files, HTTP, and a protocol of three methods for custom sinks.

All deliver at least once, in the order of commits: the position is stored only after ``flush`` has returned, and after
a crash the records since then are sent again. They must not depend on the event store or the server.
"""

from rowtide.connector.delivery.sinks.http import HttpSink
from rowtide.connector.delivery.sinks.json_lines import FileSink, StreamSink
from rowtide.connector.delivery.sinks.record_sink import Record, RecordSink, RecordSinkDelivery

__all__ = ["FileSink", "HttpSink", "Record", "RecordSink", "RecordSinkDelivery", "StreamSink"]
