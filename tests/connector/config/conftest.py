"""A minimal valid configuration, for tests to modify."""

import pytest

from tests.support.configurations import PROPERTIES


@pytest.fixture
def valid() -> dict[str, str]:
    return dict(PROPERTIES)
