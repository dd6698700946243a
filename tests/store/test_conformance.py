"""Both stores do what every store does."""

import pytest

from sessionmgr.store import open_memory_store
from sessionmgr.testing.store_conformance import STORE_BEHAVIOURS, Behaviour


@pytest.mark.parametrize("behaviour", STORE_BEHAVIOURS, ids=str)
async def test_the_memory_store_conforms(behaviour: Behaviour) -> None:
    await behaviour(open_memory_store)
