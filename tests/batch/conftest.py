"""Shared fixtures of the batch tests."""

import pytest
from trio.testing import MockClock


@pytest.fixture
def real_clock() -> MockClock:
    """Return a clock for work in threads: it runs in real time, and a test can advance it."""
    return MockClock(rate=1.0)
