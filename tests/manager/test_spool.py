"""What the store could not take is put aside for its user alone."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import open_manager
from sessionmgr.manager.spool import Spool
from sessionmgr.model import Failure, FailureKind, RunCancelled, RunFailed
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted import Fail, Hang, Say, Wait
from tests.manager.house import open_house, play

SECRET = "hunter2-and-more"
KEY = "sk-ant-api03-AbCdEf0123456789_-AbCdEf"


async def test_ends_that_are_put_aside_are_found_again_and_are_nobody_elses(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db-spool"
    spool = Spool(path)
    end = RunCancelled(session_id="ses_1", run_id="run_1", detail="secret words")
    await spool.add([end])
    assert path.stat().st_mode & 0o777 == 0o600
    assert await Spool(path).read() == {"run_1": end}
    await spool.clear()
    assert not path.exists()


async def test_an_end_that_the_store_could_not_take_is_put_aside_without_its_secrets(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyStore()
    async with open_house(store=store, lawful=False) as house:
        session = await house.manager.open_session("actor")
        script = play(Say(text="hi"), Wait(seconds=3), Fail(message=f"401: no such key: {SECRET}"))
        run = await session.submit(script, env={"MY_API_KEY": SECRET})
        await trio.sleep(1)
        store.thawed = trio.Event()  # it does not answer
        await trio.sleep(5)
    assert "401: no such key: [redacted]" in str(await run.result())
    assert "event=end_not_stored" in caplog.text  # the line is that of the spool
    assert "401: no such key: [redacted]" in caplog.text
    assert SECRET not in caplog.text


async def test_what_an_older_version_has_spooled_is_stored_without_well_known_keys(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    store = FaultyStore()
    async with open_house(store=store, lawful=False) as house:
        run = await house.start(Say(text="hi"), Hang())
        await trio.sleep(1)
        store.closed = True
    store.closed = False
    spooled = Spool(tmp_path / "spool")
    failure = Failure(kind=FailureKind.AUTH_FAILED, message=f"no such key: {KEY}")
    await spooled.add([RunFailed(session_id=run.session_id, run_id=run.id, failure=failure)])
    manager = open_manager(store=store)
    manager._reconciler._spool = spooled  # type: ignore[misc]  # a store in memory has no file
    async with manager:
        result = await manager.result(run.id)
    assert result.failure is not None
    assert result.failure.message == "no such key: [redacted]"
