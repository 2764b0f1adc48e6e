"""Sessions without access to Java."""

from typing import Any

import pytest

from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.jvm.driver import java_class


def test_a_session_of_spark_connect_is_refused() -> None:
    class ConnectSession:
        @property
        def _jvm(self) -> Any:
            raise AttributeError("JVM_ATTRIBUTE_NOT_SUPPORTED")  # as PySparkAttributeError of pyspark.sql.connect

    session: Any = ConnectSession()
    with pytest.raises(SettingsError, match=r"Spark Connect gives no access to its driver. Run it on the cluster"):
        java_class(session, "java.util.ArrayList")
