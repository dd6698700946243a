"""An adapter that leaves each run to one of several adapters, by its options."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
from msgspec.structs import replace

from sessionmgr.adapter import (
    EMULATED,
    NATIVE,
    UNSUPPORTED,
    Capabilities,
    Health,
    MappedMode,
    Options,
    PermissionMap,
    ProviderAdapter,
    RunContext,
    RunSpec,
)
from sessionmgr.adapter.kit import DelegatingAdapter, combined_capabilities
from sessionmgr.manager import open_manager
from sessionmgr.model import MessageReceived, PermissionMode, RunStatus


class FinchOptions(Options, frozen=True, kw_only=True):
    quiet: bool = False


class QuietFinch(ProviderAdapter):
    """It answers at once, and takes no messages."""

    name = "finch"
    display_name = "Quiet finch"
    capabilities = Capabilities(streaming=EMULATED, resume=NATIVE)
    options = FinchOptions
    permissions = PermissionMap({mode: MappedMode("quiet") for mode in PermissionMode})
    released: list[str] = []  # noqa: RUF012  # replaced by each test

    async def run(self, run: RunContext) -> None:
        await run.emit(MessageReceived(content=f"quiet {run.prompt}"))
        await run.finish(stop_reason="end_turn")

    def release(self, provider_session_id: str) -> None:
        self.released.append(provider_session_id)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        return Health(state="fail", detail="it sleeps")


class LoudFinch(ProviderAdapter):
    """It sings until it is interrupted, and repeats the messages."""

    name = "finch"
    capabilities = Capabilities(streaming=NATIVE, interrupt=NATIVE, steer=EMULATED)
    options = FinchOptions
    serves = frozenset({"directories"})

    def __init__(self) -> None:
        super().__init__()
        self.messages, self.read = trio.open_memory_channel[str | None](10)

    async def run(self, run: RunContext) -> None:
        async for each in self.read:
            if each is None:
                break
            await run.emit(MessageReceived(content=each))
        await run.finish(stop_reason="end_turn")

    async def interrupt(self, run: RunContext) -> None:
        await self.messages.send(None)

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        await self.messages.send(content)
        await self.messages.send(None)
        return True


class Finch(DelegatingAdapter):
    name = "finch"
    delegates = (LoudFinch, QuietFinch)
    capabilities = combined_capabilities(*delegates)
    options = FinchOptions
    serves = LoudFinch.serves

    @classmethod
    def delegate(cls, options: Options) -> type[ProviderAdapter]:
        return QuietFinch if FinchOptions.of(options).quiet else LoudFinch


QUIET = {"quiet": True}


def test_the_whole_can_what_one_of_them_can() -> None:
    assert Finch.capabilities == Capabilities(
        streaming=NATIVE, interrupt=NATIVE, steer=EMULATED, resume=NATIVE
    )
    assert combined_capabilities(QuietFinch).steer == UNSUPPORTED


def test_the_options_decide_what_a_run_can() -> None:
    quiet = FinchOptions(quiet=True)
    assert Finch.offers(quiet) == QuietFinch.capabilities
    assert Finch.permission_map(quiet) is QuietFinch.permissions
    assert Finch.readiness(quiet, {}, "/").detail == "it sleeps"


async def test_health_is_that_of_a_run_without_options() -> None:
    assert (await Finch().health()).state == "ok"


async def test_a_run_its_messages_and_its_interrupt_go_to_the_delegate() -> None:
    async with open_manager(adapters={"finch": Finch}) as manager:
        session = await manager.open_session("finch")
        run = await session.submit("sing", options=QUIET)
        assert (await run.result()).text == "quiet sing"
        run = await session.submit("sing")
        await run.append("louder")
        assert (await run.result()).text == "louder"
        run = await session.submit("sing")
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED


async def test_a_field_that_the_delegate_lacks_is_refused() -> None:
    async with open_manager(adapters={"finch": Finch}) as manager:
        session = await manager.open_session("finch")
        run = await session.submit("sing", options=QUIET, directories=["/"])
        failure = (await run.result()).failure
        assert failure is not None
        assert failure.message == "directories: Quiet finch does not support it"
    spec = RunSpec(
        prompt="sing",
        cwd="/",
        env={},
        permission=QuietFinch.permissions.ask("finch", PermissionMode.DEFAULT),
        options=FinchOptions(quiet=True),
    )
    assert Finch.fault(spec) is None
    assert Finch.fault(replace(spec, directories=("/",))) == failure.message


async def test_a_delegate_that_takes_no_messages_leaves_them() -> None:
    assert not QuietFinch.can_append()


async def test_only_the_delegate_of_a_run_keeps_its_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released: list[str] = []
    monkeypatch.setattr(QuietFinch, "released", released)
    finch = Finch()
    finch.release("s-1")
    assert released == ["s-1"]
