"""The status of a manager, its providers and its store, and the health of providers."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import Health, Options, ProviderUnknown
from sessionmgr.manager import ProviderDown, ProviderStatus, StoreStatus, open_manager
from sessionmgr.model import RunStatus
from sessionmgr.otp import Continue
from sessionmgr.testing.faulty_store import FaultyStore
from sessionmgr.testing.scripted_provider import Hang, Say, ScriptedProvider, scripted
from tests.manager.harness import open_harness, run_scripted


class Ailing(ScriptedProvider):
    async def health(self) -> Health:
        await trio.sleep(3)
        return Health(state="skip", detail="it is not logged in; run login")


class CrashingProvider(ScriptedProvider):
    async def health(self) -> Health:
        await trio.lowlevel.checkpoint()
        raise ValueError("no such program")


class SilentProvider(ScriptedProvider):
    async def health(self) -> Health:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return Health()


class Talkative(ScriptedProvider):
    async def health(self) -> Health:
        await trio.lowlevel.checkpoint()
        return "fine"  # type: ignore[return-value]


class StillbornProvider(ScriptedProvider):
    async def init(self) -> Continue | None:
        await trio.lowlevel.checkpoint()
        raise OSError("no home")


OTHERS = {
    "ailing": type("A", (Ailing,), {"name": "ailing"}),
    "crashing": type("C", (CrashingProvider,), {"name": "crashing"}),
    "silent": type("S", (SilentProvider,), {"name": "silent"}),
    "talkative": type("T", (Talkative,), {"name": "talkative"}),
    "stillborn": type("B", (StillbornProvider,), {"name": "stillborn"}),
}


async def test_each_provider_says_how_it_is_or_fails_and_says_why(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others=OTHERS) as house:
        run = await house.start(Hang())
        with trio.fail_after(61):
            found = await house.manager.health(["actor", *OTHERS])
        assert list(found) == sorted(["actor", *OTHERS])
        assert found["actor"] == Health()
        assert found["ailing"] == Health(state="skip", detail="it is not logged in; run login")
        fails = {name: health.detail for name, health in found.items() if health.state == "fail"}
        assert fails.keys() == {"crashing", "silent", "talkative", "stillborn"}
        assert "ValueError: no such program" in fails["crashing"]
        assert "within 60 s" in fails["silent"]
        assert "'fine', which is not a Health" in fails["talkative"]
        assert "no home" in fails["stillborn"]
        assert run.status == "running"


class Unready(ScriptedProvider):
    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        if "HOME" not in env:
            raise KeyError("HOME")
        return Health(state="fail", detail=f"there is no login in {env['HOME']}; log in")


@pytest.mark.parametrize(
    ("environ", "detail"),
    [
        ({"HOME": "/theirs"}, "there is no login in /theirs; log in"),
        ({}, "its check failed: KeyError: 'HOME'"),
    ],
)
async def test_a_login_is_looked_for_in_the_environment_of_the_manager(
    autojump_clock: MockClock, environ: dict[str, str], detail: str
) -> None:
    unready = type("U", (Unready,), {"name": "unready"})
    async with open_manager(adapters={"unready": unready}, environ=environ) as manager:
        found = await manager.health(["unready"])
    assert found["unready"] == Health(state="fail", detail=detail)


async def test_without_names_all_that_are_there_are_asked(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        found = await house.manager.health()
        assert found["actor"] == Health()
        assert "shell" in found
        with pytest.raises(ProviderUnknown):
            await house.manager.health(["nobody"])


async def test_a_manager_says_how_it_stands(autojump_clock: MockClock) -> None:
    async with open_harness(others={"unused": scripted("unused")}) as house:
        manager = house.manager
        session = await manager.open_session("actor")
        runs = [await session.submit(run_scripted(Hang())) for _ in range(3)]
        await house.start(Hang())
        await manager.open_session("unused")
        status = manager.status()
        assert status.open
        assert (status.sessions, status.running, status.queued) == (2, 2, 2)
        assert status.providers == {
            "actor": ProviderStatus(state="up", running=2, queued=2),
            "unused": ProviderStatus(state="idle"),
        }
        assert status.store == StoreStatus(state="open", waiting=0.0)
        for run in runs:
            run.cancel()
            await run.result()
        assert manager.status().running == 1
    assert not manager.status().open


async def test_a_provider_that_is_down_says_until_when_and_why(autojump_clock: MockClock) -> None:
    async with open_harness(others=OTHERS) as house:
        session = await house.manager.open_session("stillborn")
        with pytest.raises(ProviderDown):
            await session.submit("hello")
        await trio.sleep(1)
        down = house.manager.status().providers["stillborn"]
        assert down.state == "down"
        assert down.retry_in == pytest.approx(4, abs=0.1)
        assert "no home" in (down.why or "")
        await trio.sleep(10)
        idle = house.manager.status().providers["stillborn"]
        assert (idle.state, idle.retry_in, idle.why) == ("idle", None, down.why)


async def test_a_store_that_keeps_a_batch_waiting_is_seen(autojump_clock: MockClock) -> None:
    store = FaultyStore()
    async with open_harness(store=store) as house:
        run = await house.start(Hang())
        await trio.sleep(1)
        store.thawed = trio.Event()
        run.cancel()
        await trio.sleep(7)
        assert house.manager.status().store.waiting == pytest.approx(7, abs=0.1)
        store.thawed.set()
        await run.result()
        assert house.manager.status().store == StoreStatus(state="open", waiting=0.0)


async def test_without_sessions_nothing_waits_and_nothing_ever_has() -> None:
    async with open_manager() as manager:
        inboxes = manager.status().inboxes
    assert (inboxes.items, inboxes.size, inboxes.fullest, inboxes.peak) == (0, 0, 0, 0)


async def test_a_store_in_a_file_is_closed_with_its_manager(tmp_path: Path) -> None:
    async with open_manager(store=tmp_path / "runs.db") as manager:
        assert manager.status().store.state == "open"
    assert manager.status().store.state == "closed"


async def test_stored_sessions_say_how_their_last_runs_stand(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        done = await house.result(Say(text="a"))
        run = await house.start(Hang())
        async for event in run:
            if event.type == "run_started":
                break
        found = {each.id: each for each in await house.manager.sessions(state="open")}
        assert (found[done.session_id].status, found[done.session_id].run_id) == (
            RunStatus.COMPLETED,
            done.id,
        )
        assert found[run.session_id].status is RunStatus.RUNNING
        assert await house.manager.sessions(provider="other") == []
