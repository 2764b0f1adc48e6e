"""The filter of librdkafka's log."""

import logging

from rowtide.connector.delivery.kafka.client_log import RepeatFilter


def line(text: str, second: float = 0, *args: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": text, "args": args, "created": second})


def test_the_same_failure_is_logged_every_30_seconds() -> None:
    passes = RepeatFilter().filter
    assert passes(line("a:1: refused (after 0ms in state CONNECT)"))
    assert not passes(line("a:1: refused (after 1ms in state CONNECT, 9 identical error(s) suppressed)", 29))
    assert passes(line("b:1: refused (after 0ms in state CONNECT)", 29))
    assert passes(line("a:1: refused (after 1ms in state CONNECT)", 30))
    assert not passes(line("a:1: refused (after 1ms in state CONNECT)", 59))


def test_lines_that_the_error_callback_reports_too_are_dropped() -> None:
    passes = RepeatFilter().filter
    assert not passes(line("%s [%s] %s", 0, "FAIL", "rdkafka#producer-1", "a:1: refused"))
    assert passes(line("%s [%s] %s", 0, "GETPID", "rdkafka#producer-1", "retrying"))
