"""What of the Kafka client's log an operator gets to see."""

import logging

from rowtide.connector.delivery.kafka.client_log import Sparing


def line(text: str, second: float = 0, *args: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": text, "args": args, "created": second})


def test_the_same_failure_is_told_once_in_a_while() -> None:
    passes = Sparing().filter
    assert passes(line("a:1: refused (after 0ms in state CONNECT)"))
    assert not passes(line("a:1: refused (after 1ms in state CONNECT, 9 identical error(s) suppressed)", 29))
    assert passes(line("b:1: refused (after 0ms in state CONNECT)", 29))
    assert passes(line("a:1: refused (after 1ms in state CONNECT)", 30))
    assert not passes(line("a:1: refused (after 1ms in state CONNECT)", 59))


def test_what_the_client_reports_as_an_error_too_is_told_once() -> None:
    passes = Sparing().filter
    assert not passes(line("%s [%s] %s", 0, "FAIL", "rdkafka#producer-1", "a:1: refused"))
    assert passes(line("%s [%s] %s", 0, "GETPID", "rdkafka#producer-1", "retrying"))
