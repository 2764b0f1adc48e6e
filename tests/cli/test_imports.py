"""Commands import what they need, and a connector without special features does not import those of others."""

import json
import subprocess
import sys
from functools import cache

import pytest

from tests.support.configurations import PROPERTIES

HELP = "from rowtide.cli import main; main(['--help'], standalone_mode=False)"
RUN = f"""\
import asyncio
import rowtide.cli.connectors.run
from rowtide.connector.config import from_properties
from rowtide.connector.worker import faust_app
app = faust_app.create_app(from_properties({PROPERTIES}))
asyncio.run(app.on_start())
"""
"""What ``rowtide run`` does before it starts a connector."""

OF_OTHERS = {
    "IPython",
    "confluent_kafka.schema_registry",
    "deltalake",
    "duckdb",
    "kazoo",
    "multiprocessing",
    "pandas",
    "pyarrow",
    "pyspark",
    "rich",
    "rowtide.canal",
    "rowtide.cluster",
    "rowtide.connector.engine.decoding.worker",
    "rowtide.connector.engine.engine",
    "rowtide.connector.engine.replay",
    "rowtide.connector.snapshot.blocking.snapshots",
    "rowtide.connector.snapshot.incremental.snapshots",
    "rowtide.connector.snapshot.initial",
    "rowtide.connector.source.mirror.reader",
    "rowtide.databus",
    "rowtide.envelope.transforms.fields",
    "rowtide.envelope.transforms.routing",
    "rowtide.spark_consumers",
    "zstandard",
}
OF_LIBRARIES = {
    "aiohttp.client",
    "aiohttp.connector",
    "aiokafka",
    "argparse",
    "colorama",
    "cramjam",
    "croniter",
    "cryptography.hazmat.bindings._rust",
    "dateutil",
    "difflib",
    "html.entities",
    "idna",
    "pickletools",
    "pytz",
    "statistics",
    "yaml",
    "zoneinfo",
}
"""What Faust and PyMySQL import themselves, whether it is used or not."""
OF_A_WORKER = {
    "aiohttp",
    "asyncio",
    "confluent_kafka",
    "cryptography",
    "faust",
    "mode",
    "orjson",
    "pymysql",
    "rowtide.connector",
    "rowtide.envelope",
    "rowtide.schema_history",
    "rowtide.topics",
}


@cache
def imported(code: str) -> frozenset[str]:
    """The modules that a new interpreter has imported when it has run a program."""
    program = f"import sys\n{code}\nimport json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(("code", "unneeded"), [(HELP, OF_OTHERS | OF_LIBRARIES | OF_A_WORKER), (RUN, OF_OTHERS)])
def test_modules_that_are_not_needed_are_not_imported(code: str, unneeded: set[str]) -> None:
    assert imported(code) & unneeded == set()


def test_the_names_are_those_of_modules() -> None:
    """A misspelt name would never be imported."""
    found = imported(RUN)
    assert found >= OF_A_WORKER | OF_LIBRARIES


def test_running_a_connector_makes_no_tables_of_character_sets() -> None:
    """Those of Asian character sets are the largest."""
    assert not {"_codecs_jp", "_codecs_cn", "_codecs_kr", "encodings.cp932"} & imported(RUN)


def test_garbage_is_collected_again_after_the_import_of_a_command() -> None:
    program = f"""\
import gc
from rowtide.cli import importing
{HELP.replace("--help", "properties', 'name")}
print(gc.isenabled(), gc.get_freeze_count() > 0)
try:
    with importing():
        raise ImportError
except ImportError:
    print(gc.isenabled())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["True True", "True"]
