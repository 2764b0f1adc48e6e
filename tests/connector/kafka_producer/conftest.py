"""A broker with the listeners of ``kafka_listeners``, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.support.kafka.listeners import Listeners, listening


@pytest.fixture(scope="session")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    with listening(tmp_path_factory.mktemp("tls")) as found:
        yield found
