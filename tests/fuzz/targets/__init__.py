"""The targets: each is one kind of input from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.campaign import Target
from tests.fuzz.targets.binary_json import BinaryJson
from tests.fuzz.targets.both_decoders import BothDecoders
from tests.fuzz.targets.canal import CanalEntries
from tests.fuzz.targets.connections import LogIn, Results
from tests.fuzz.targets.ddl import Statements
from tests.fuzz.targets.files import BinlogFiles
from tests.fuzz.targets.history import History, Summaries
from tests.fuzz.targets.offsets import Offsets
from tests.fuzz.targets.packets import Packets
from tests.fuzz.targets.rows import RowEvents
from tests.fuzz.targets.search import Searches

TARGETS: Mapping[str, Callable[[], Target]] = {
    "packets": Packets,
    "rows": RowEvents,
    "both decoders": BothDecoders,
    "canal": CanalEntries,
    "json": BinaryJson,
    "files": BinlogFiles,
    "search": Searches,
    "log-in": LogIn,
    "results": Results,
    "ddl": Statements,
    "offsets": Offsets,
    "history": History,
    "summaries": Summaries,
}
