"""How the next chunk is read, after reads that were in vain."""

from rowtide.connector.snapshot.incremental.read_chunks.attempts import Attempts


def test_rows_that_change_are_read_while_the_stream_waits_and_then_fewer_at_a_time() -> None:
    attempts = Attempts(10)
    found = []
    for _ in range(6):
        attempts.rows_changed()
        found.append((attempts.held, attempts.size))
    assert found == [(True, 10), (True, 5), (True, 2), (True, 1), (True, 1), (True, 1)]
    assert not attempts.exhausted, "rows that change are never a reason to give a table up"
    attempts.emitted(1)
    assert not attempts.held


def test_a_query_that_the_server_refuses_is_given_up() -> None:
    attempts = Attempts(10)
    for _ in range(7):
        attempts.server_refused()
    assert (attempts.exhausted, attempts.size) == (False, 1)
    attempts.server_refused()
    assert attempts.exhausted
    attempts.next_table()
    assert (attempts.exhausted, attempts.size) == (False, 10)


def test_a_chunk_that_was_too_large_limits_those_of_its_table() -> None:
    attempts = Attempts(1000)
    attempts.too_large(300)
    assert (attempts.size, attempts.limit) == (150, 150)
    attempts.rows_changed()
    attempts.rows_changed()
    attempts.emitted(75)
    assert (attempts.size, attempts.limit) == (75, 150)
    attempts.next_table()
    assert (attempts.size, attempts.limit) == (1000, None)


def test_reads_in_vain_are_reported_from_time_to_time() -> None:
    attempts = Attempts(10)
    reported = []
    for number in range(20):
        if number % 2:
            attempts.rows_changed()
        else:
            attempts.structure_changed()
        if attempts.to_report:
            reported.append(attempts.in_vain)
    assert reported == [8, 16]
    assert attempts.delays == 1
    attempts.emitted(10)
    assert not attempts.to_report
    assert attempts.delays == 0


def test_only_a_table_that_makes_no_progress_is_put_off() -> None:
    attempts = Attempts(10)
    for _ in range(7):
        attempts.rows_changed()
    assert attempts.delays == 0
    attempts.rows_changed()
    assert attempts.delays == 1
    attempts.server_refused()
    attempts.server_refused()
    assert attempts.delays == 2
