"""Rows of a chunk against the events that the stream has emitted since."""

from rowtide.connector.snapshot.incremental.keys.journal import Journal, Verdict


def test_a_row_is_dropped_only_if_an_event_of_its_key_came_after_it_was_read() -> None:
    journal = Journal()
    journal.record(["a"], replaces=True)
    since = journal.number
    journal.record(["b"], replaces=True)
    assert [journal.verdict(key, since) for key in "abc"] == [Verdict.EMIT, Verdict.DROP, Verdict.EMIT]
    assert journal.verdict("a", 0) is Verdict.DROP
    assert journal.concerns(since)
    assert not journal.concerns(journal.number)


def test_an_event_that_does_not_replace_the_row_makes_it_be_read_again() -> None:
    journal = Journal()
    journal.record(["a"], replaces=False)
    assert journal.verdict("a", 0) is Verdict.READ_AGAIN
    assert journal.verdict("b", 0) is Verdict.EMIT


def test_an_event_with_unknown_keys_makes_every_row_be_read_again() -> None:
    journal = Journal()
    since = journal.number
    journal.record_unknown()
    assert journal.verdict("a", since) is Verdict.READ_AGAIN
    assert journal.verdict("a", journal.number) is Verdict.EMIT


def test_pruning_keeps_the_events_that_chunks_are_compared_with() -> None:
    journal = Journal()
    journal.record(range(20_000), replaces=True)
    journal.record(["late"], replaces=True)
    journal.prune(1)
    assert len(journal) == 1
    assert journal.verdict("late", 1) is Verdict.DROP
