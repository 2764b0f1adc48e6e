"""The examples, as far as they need no server."""

import subprocess
import sys

from tests.support.source_tree import ROOT


def test_an_example_without_its_argument_says_how_to_call_it() -> None:
    program = ROOT / "examples/table_at.py"
    said = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stderr.startswith("usage: python table_at.py POSITION")
