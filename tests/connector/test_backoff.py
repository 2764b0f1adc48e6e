from rowtide.connector.backoff import Backoff, backoff_s


def test_each_failure_in_a_row_doubles_the_wait_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.failed() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_success_lets_the_next_failure_be_the_first_one() -> None:
    backoff = Backoff(0.5, 30.0)
    backoff.failed()
    backoff.failed()
    backoff.succeeded()
    assert backoff.failed() == 0.5


def test_any_number_of_failures_has_a_wait() -> None:
    assert backoff_s(1_000_000, 0.001, 60.0) == 60.0
    assert backoff_s(1, 5.0, 1.0) == 1.0, "never longer than the longest"
