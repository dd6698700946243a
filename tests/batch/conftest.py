"""What tests of batches share."""

import pytest
from trio.testing import MockClock


@pytest.fixture
def real_clock() -> MockClock:
    """Return a clock for work in threads: it runs in real time, and a test can move it on."""
    return MockClock(rate=1.0)
