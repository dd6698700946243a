"""Fixtures for all tests of stores."""

from collections.abc import Generator

import pytest

from sessionmgr.store.sqlite import store


@pytest.fixture(scope="session", autouse=True)
def _patient() -> Generator[None]:
    """Let closing wait for a slow disk, on a busy machine.

    A store that is closed before its log is in the file continues that in a thread, and tests
    read and measure the file.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "GRACE", 60.0)
        yield
