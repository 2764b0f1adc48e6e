"""The page about the architecture names the modules through which a row event passes."""

import importlib.util
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.header import ROWS_TYPES
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.connector.pipeline.test_statements_again import packets, settings
from tests.support.recordings.golden import Case
from tests.support.source_tree import ROOT

CASE = "heartbeat"
MOST = 24
AHEAD_OF_PIPELINE = 5
ONCE = {"rowtide.connector.rows.row_compiler"}
"""Modules that the page mentions, although they have no part in every event."""


def modules_of_the_page() -> set[str]:
    """The modules in the steps of the page."""
    text = (Path(ROOT) / "docs" / "architecture.md").read_text()
    steps = text.partition("## One row event")[2].partition("The reader then")[0].partition("1. **")[2]
    paths = [path for path in re.findall(r"`([a-z_]+/[a-z_/]+)(?:\.py)?`", steps) if not path.startswith("tests/")]
    return {
        "rowtide." + (path if path.startswith("envelope/") else f"connector/{path}").replace("/", ".") for path in paths
    }


def followed() -> set[str]:
    """The modules whose functions a row event calls in the pipeline, when everything about its table is cached."""
    case, start = Case(CASE), Case(CASE).start
    assert start is not None
    tables = Tables(Server(Flavor(settings(CASE).connector), str(case.server.get("version", ""))))
    whole = SourceOffset("binlog.000001", 4, start.gtids and "")
    pipeline = Pipeline(settings(CASE), tables, whole, lambda: 0)
    events, at, found = packets(CASE), 0, []
    while at < len(events):
        called: set[str] = set()

        def note(frame: FrameType, kind: str, _: Any, called: set[str] = called) -> None:
            if kind == "call":
                called.add(frame.f_globals.get("__name__", ""))

        is_rows = not ROWS_TYPES.isdisjoint(events[at][4:5])
        sys.setprofile(note)
        try:
            steps, at = pipeline.receive_next(events, at)
            made = [output for outputs in steps for output in outputs]
        finally:
            sys.setprofile(None)
        if is_rows and any(isinstance(output, Batch) and output.messages for output in made):
            found.append({name for name in called if name.startswith("rowtide.")})
    return min(found, key=len)


def test_the_page_names_the_modules_that_a_row_event_passes() -> None:
    page = modules_of_the_page()
    assert {name for name in page if importlib.util.find_spec(name) is None} == set()
    assert followed() - page == set()
    assert len(page - ONCE) == MOST
    # In compiled code one step has no module in Python: decoding an event, or joining texts.
    assert MOST - AHEAD_OF_PIPELINE - len(followed()) <= 1
