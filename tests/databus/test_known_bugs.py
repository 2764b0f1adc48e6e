"""The bugs that mysql-databus and its SDK are known for, and the tests that show that rowtide does not have them.

==========================================================  ============================================================
bug                                                         test
==========================================================  ============================================================
1. the first event after a dump, or at an explicit         ``test_the_client_of_the_original_loses_nothing_after``,
   position, is lost                                        ``test_an_explicit_position_is_inclusive_or_exclusive``,
                                                            ``test_a_dump_comes_first_and_the_first_event_behind``
2. the offset is saved before the event is processed        ``test_an_acknowledged_event_does_not_come_again``
3. all headers are the same object                          ``test_keys_of_different_events_are_different_objects``
4. a missing dump is an empty one                           ``test_an_empty_dump_is_told_from_a_missing_one``,
                                                            ``test_a_dump_that_is_not_complete_is_refused``
5. a keep-alive node is decoded wrongly                     ``test_a_keep_alive_node_has_its_time_and_an_address``
6. only the last row has an SQL statement                   ``test_every_row_has_a_statement``
7. values are inexact; ENUM and SET differ from dumps       ``test_the_client_rebuilds_the_tables``,
                                                            ``test_rows_have_the_texts_of_the_stream``,
                                                            ``test_numbers_are_exact_and_labels_are_text``
8. after a fail-over to a lower number all is dropped       ``test_after_a_fail_over_to_a_lower_number_nothing_is``
9. an empty topic is waited for without end                 ``test_an_empty_topic_does_not_hang``
10. an unreadable key has the action of the one before      ``test_an_unreadable_key_does_not_inherit_the_action``
11. statements are missed; dates are formatted wrongly      ``test_each_table_has_a_database``,
                                                            ``test_the_client_rebuilds_the_tables``,
                                                            ``test_names_of_dumps_ascend_with_time``
==========================================================  ============================================================
"""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import pytest

from rowtide.databus.events import Position
from rowtide.databus.server.dumps.folder import DumpFolder
from tests.support.databus.streams import SERVERS, message_positions, starts
from tests.support.mysql.recorded_server import recorded_stream


def test_each_bug_has_tests_that_exist() -> None:
    named = set(re.findall(r"``(test_\w+)``", __doc__ or ""))
    files = [file.read_text() for file in Path(__file__).parent.rglob("test_*.py")]
    missing = [name for name in named if not any(f"def {name}" in text for text in files)]
    assert len(named) > 11
    assert missing == []


def kept_by_the_original(start: Position, positions: list[Position]) -> list[Position]:
    """What the client of the original hands over: each event after the last one that it has handed over."""
    last, kept = start, []
    for position in positions:
        if last.before(position):
            kept.append(position)
            last = position
    return kept


@pytest.mark.parametrize("name", SERVERS)
def test_the_client_of_the_original_loses_nothing_after_any_position_between_transactions(name: str) -> None:
    """Such a position is that of a dump."""
    server, found = recorded_stream(name), 0
    for start, positions in starts(server):
        assert kept_by_the_original(start, positions) == positions, start
        found += len(positions) > 0
    assert found > 10
    assert kept_by_the_original(Position("binlog.000000", 4), message_positions(server)) == message_positions(server)


def test_names_of_dumps_ascend_with_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The original has the hour in the place of the month."""
    folder, names, gmtime = DumpFolder(tmp_path), [], time.gmtime
    for now in (1_700_000_000.0, 1_700_040_000.0, 1_702_000_000.0, 1_740_000_000.0):
        monkeypatch.setattr(time, "gmtime", partial(gmtime, now))
        names.append(folder.new_name())
    assert names == sorted(names)
