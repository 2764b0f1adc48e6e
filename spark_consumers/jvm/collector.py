"""Selects the garbage collector of Spark processes that rowtide starts on this machine."""

import re
from collections.abc import Mapping
from pathlib import Path

_DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
_EXTRA_OPTIONS = "spark.driver.extraJavaOptions"
_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
_FILES = ("spark-defaults.conf", "java-opts")
_SCRIPT = "spark-env.sh"
"""It can set any of the variables."""

_CHOSEN = re.compile(
    r"-XX:[+-]Use\w*GC\b"
    r"|-XX:(?:Flags|VMOptionsFile)=|(?:^|\s)@|--properties-file"  # files, which may name a collector
    rf"|{re.escape(_DEFAULT_OPTIONS)}"  # the settings of the session would replace it
)


def parallel_collector(
    settings: Mapping[str, str], environment: Mapping[str, str], configuration: Path
) -> dict[str, str]:
    """Return the setting with which Java starts with its parallel collector.

    For a batch job it takes less processor time than Java's default, G1, whose shorter pauses have no benefit here.
    Java does not start with two collectors, so there is no setting if the user has chosen one, or may have.

    Args:
        settings: of the session.
        environment: variables of the process that starts Java.
        configuration: directory of Spark's configuration files, which may be missing.
    """
    texts = [settings.get(_EXTRA_OPTIONS, ""), *(environment.get(name, "") for name in _VARIABLES)]
    texts += [file.read_text(errors="replace") for name in _FILES if (file := configuration / name).is_file()]
    if _DEFAULT_OPTIONS in settings or (configuration / _SCRIPT).exists() or any(map(_CHOSEN.search, texts)):
        return {}
    return {_DEFAULT_OPTIONS: "-XX:+UseParallelGC"}
