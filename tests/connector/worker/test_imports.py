"""What a start imports: only what a worker without a terminal needs, because every module delays the first record."""

import subprocess
import sys

NOT_NEEDED = ("rich", "pyspark", "pyarrow", "duckdb", "pandas", "IPython", "rowtide.spark_consumers")
CODE = f"""
import sys
import rowtide.cli.connectors.run
import rowtide.connector.worker.faust_app
print(*(name for name in {NOT_NEEDED!r} if name in sys.modules))
"""


def test_a_worker_imports_nothing_of_other_commands() -> None:
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
