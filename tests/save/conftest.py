"""What many tests of saving need."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the syncs, which only a loss of power needs."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
