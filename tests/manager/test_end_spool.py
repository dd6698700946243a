"""The spool of ends that the store could not take; only its user can read it."""

import os
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import Manager, open_manager
from sessionmgr.manager.end_spool import EndSpool
from sessionmgr.model import Failure, FailureKind, RunCancelled, RunFailed, RunStatus
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Wait, scripted
from tests.manager.harness import open_harness, run_scripted

SECRET = "hunter2-and-more"
KEY = "sk-ant-api03-AbCdEf0123456789_-AbCdEf"


async def test_spooled_ends_are_found_again_and_are_private(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db-spool"
    spool = EndSpool(path)
    end = RunCancelled(session_id="ses_1", run_id="run_1", detail="secret words")
    await spool.add([end])
    assert path.stat().st_mode & 0o777 == 0o600
    assert await EndSpool(path).read() == {"run_1": end}
    await spool.drop({"run_1"})
    assert not path.exists()


async def test_an_end_is_put_aside_until_it_is_stored_whatever_else_is_dropped(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db-spool"
    spool, another = EndSpool(path), EndSpool(path)
    ends = [RunCancelled(session_id="ses_1", run_id=f"run_{n}") for n in range(3)]
    await spool.add(ends[:2])
    found = await another.read()
    await spool.add(ends[2:])  # after the other manager has read it
    await another.drop({"run_0"})
    assert list(found) == ["run_0", "run_1"]
    assert list(await spool.read()) == ["run_1", "run_2"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208


async def test_managers_that_use_the_spool_at_once_lose_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each waits for all others, on a disk that may be slow.
    monkeypatch.setattr("sessionmgr.manager.end_spool.LOCK_TIMEOUT", 240.0)
    path = tmp_path / "runs.db-spool"

    async def manager(name: str) -> None:
        spool = EndSpool(path)
        for n in range(20):
            await spool.add([RunCancelled(session_id="ses_1", run_id=f"{name}_{n}")])
            if n:
                await spool.drop({f"{name}_{n - 1}"})

    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(manager, name)
    assert set(await EndSpool(path).read()) == {f"{name}_19" for name in "abcd"}


async def test_the_end_of_a_run_whose_manager_lives_stays_in_the_spool(
    tmp_path: Path,
) -> None:
    store, spool = FaultyStore(), EndSpool(tmp_path / "spool")
    async with open_harness(store=store) as house:
        run = await house.start(Hang())
        # Its end could not be stored and is in the spool; the manager has not retried yet.
        failure = Failure(kind=FailureKind.STORE_FAILED, message="put aside")
        await spool.add([RunFailed(session_id=run.session_id, run_id=run.id, failure=failure)])
        async with opened(store, spool):
            assert list(await spool.read()) == [run.id]
    async with opened(store, spool):
        assert await spool.read() == {}


def opened(store: FaultyStore, spool: EndSpool) -> Manager:
    manager = open_manager(store=store)
    manager._reconciler._spool = spool  # type: ignore[misc]  # a store in memory has no file
    return manager


async def test_an_end_that_the_store_could_not_take_is_put_aside_without_its_secrets(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyStore()
    async with open_harness(store=store, lawful=False) as house:
        session = await house.manager.open_session("actor")
        script = run_scripted(
            Say(text="hi"), Wait(seconds=3), Fail(message=f"401: no such key: {SECRET}")
        )
        run = await session.submit(script, env={"MY_API_KEY": SECRET})
        await trio.sleep(1)
        store.thawed = trio.Event()  # it does not answer
        await trio.sleep(5)
    assert "401: no such key: [redacted]" in str(await run.result())
    assert (
        "The store did not take the end of a run." in caplog.text
    )  # the record is that of the spool
    assert "401: no such key: [redacted]" in caplog.text
    assert SECRET not in caplog.text


async def test_what_an_older_version_has_spooled_is_stored_without_well_known_keys(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    store = FaultyStore()
    async with open_harness(store=store, lawful=False) as house:
        run = await house.start(Say(text="hi"), Hang())
        await trio.sleep(1)
        store.closed = True
    store.closed = False
    spooled = EndSpool(tmp_path / "spool")
    failure = Failure(kind=FailureKind.AUTH_FAILED, message=f"no such key: {KEY}")
    await spooled.add([RunFailed(session_id=run.session_id, run_id=run.id, failure=failure)])
    async with opened(store, spooled) as manager:
        result = await manager.result(run.id)
    assert result.failure is not None
    assert result.failure.message == "no such key: [redacted]"


async def test_a_spool_that_cannot_be_written_costs_a_line_of_the_log_and_no_shutdown(
    autojump_clock: MockClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyStore()
    manager = open_manager(store=store, adapters={"actor": scripted("actor")})
    manager._reconciler._spool = EndSpool(tmp_path / "none" / "spool")  # type: ignore[misc]
    async with manager:
        run = await (await manager.open_session("actor")).submit(
            run_scripted(Say(text="hi"), Hang())
        )
        await trio.sleep(1)
        store.thawed = trio.Event()  # it does not answer
    assert (await run.result()).status is RunStatus.CANCELLED
    assert caplog.text.count("The ends of runs could not be spooled.") == 1
    assert "A child crashed." not in caplog.text
