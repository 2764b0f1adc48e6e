"""Fixtures for snapshots of servers with prepared XA transactions."""

from __future__ import annotations

import pytest

from rowtide.connector.snapshot.view import consistent_view, prepared_xa


@pytest.fixture
def stay_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let snapshots look for the end of prepared XA transactions without a wait: those of the test do not end."""
    monkeypatch.setattr(consistent_view, "_XA_WAIT_S", 0)
    monkeypatch.setattr(prepared_xa, "_END_WAIT_S", 0)
