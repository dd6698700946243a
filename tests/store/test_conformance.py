"""Both stores fulfil the contract."""

from functools import partial
from pathlib import Path

import pytest
import trio

from sessionmgr.store import open_memory_store, open_sqlite_store
from sessionmgr.store.sqlite.store import Executor
from sessionmgr.testing.store_conformance import (
    LASTING_BEHAVIOURS,
    STORE_BEHAVIOURS,
    StoreBehaviour,
)


def test_there_are_behaviours_enough_and_each_has_a_name_of_its_own() -> None:
    names = [str(each) for each in (*STORE_BEHAVIOURS, *LASTING_BEHAVIOURS)]
    assert len(set(names)) == len(names) >= 45


@pytest.mark.parametrize("behaviour", STORE_BEHAVIOURS, ids=str)
async def test_the_memory_store_conforms(behaviour: StoreBehaviour) -> None:
    await behaviour(open_memory_store)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An empty store's file: to make one each time would flush the disk again and again."""
    path = tmp_path_factory.mktemp("empty") / "s.db"

    async def make() -> None:
        async with open_sqlite_store(path):
            pass

    trio.run(make)
    return path.read_bytes()


@pytest.mark.parametrize("executor", ["thread", "inline"])
@pytest.mark.parametrize("behaviour", [*STORE_BEHAVIOURS, *LASTING_BEHAVIOURS], ids=str)
async def test_the_sqlite_store_conforms(
    behaviour: StoreBehaviour, executor: Executor, empty: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(empty)
    await behaviour(partial(open_sqlite_store, path, executor=executor))
