"""Readers of topics, without Kafka."""

import pytest
from rowtide_stack.ports import free_port

import rowtide
from rowtide.topics.errors import TopicError


@pytest.mark.parametrize("group", [None, "readers"])
def test_a_broker_that_is_away_is_an_error_and_nothing_else(
    group: str | None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtide.decoder.topics._METADATA_S", 0.5)
    broker = f"127.0.0.1:{free_port()}"
    with pytest.raises(TopicError, match=f"Kafka at {broker} cannot list its topics: .*Connection refused"):
        rowtide.read_topics(broker, "shop.shop.orders", group=group)
    assert capfd.readouterr() == ("", "")
