"""Writing single records to Kafka, without a broker; the tests of history and offset stores use one."""

from __future__ import annotations

import pytest

from rowtide.schema_history.store.topic_writer import TopicWriteError, TopicWriter

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


def test_a_missing_acknowledgement_is_reported_once() -> None:
    writer = TopicWriter(NOWHERE, timeout=0.2)
    writer.send("t", b"value", b"key")
    with pytest.raises(TopicWriteError, match="timed out"):
        writer.wait()
    writer.wait()
    writer.close()
    writer.wait()


def test_the_reason_for_a_rejection_is_that_of_librdkafka() -> None:
    writer = TopicWriter({**NOWHERE, "message.max.bytes": 1000}, timeout=0.2)
    with pytest.raises(TopicWriteError, match=r"^[^{]*: Message size too large$"):
        writer.send("t", b"x" * 2000)
    with pytest.raises(TopicWriteError, match=r"no\.such\.setting"):
        TopicWriter({**NOWHERE, "no.such.setting": 1}, timeout=0.2).send("t", b"")


def test_records_are_idempotent_whatever_the_settings_say() -> None:
    with pytest.raises(TopicWriteError, match=r"when `enable.idempotence` is true"):
        TopicWriter({**NOWHERE, "enable.idempotence": False, "max.in.flight": 6}, timeout=0.2).send("t", b"")
