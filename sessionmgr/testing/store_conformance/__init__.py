"""Conformance tests for stores: every behaviour that a store must have.

A complete test module (with pytest-trio, `trio_mode = true`):

    @pytest.mark.parametrize("behaviour", STORE_BEHAVIOURS, ids=str)
    async def test_my_store(behaviour):
        await behaviour(open_my_store)

`open_my_store()` returns an async context manager whose value is an empty store. For a store that
outlives its block, and that several processes may open at once, use `LASTING_BEHAVIOURS` as well;
for these `open_my_store()` opens the same store each time, empty at first. The package does not
need pytest; a violation raises AssertionError.
"""

from sessionmgr.testing.store_conformance.all_behaviours import (
    LASTING_BEHAVIOURS as LASTING_BEHAVIOURS,
    STORE_BEHAVIOURS as STORE_BEHAVIOURS,
)
from sessionmgr.testing.store_conformance.behaviour import (
    OpenStore as OpenStore,
    StoreBehaviour as StoreBehaviour,
)

__all__ = ["LASTING_BEHAVIOURS", "STORE_BEHAVIOURS", "OpenStore", "StoreBehaviour"]
