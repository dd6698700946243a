"""Adapter of the toy agent: its capabilities, and the start and end of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import NATIVE, Capabilities, ConnectionSpec, MappedMode, PermissionMap
from sessionmgr.adapter.kit import ConversationAdapter
from sessionmgr.model import Failure, FailureKind, Fidelity, PermissionMode
from sessionmgr.process import Command
from sessionmgr.testing.toy import sdk
from sessionmgr.testing.toy.driver import ToyDriver
from sessionmgr.testing.toy.frames import ToyOpen
from sessionmgr.testing.toy.options import ToyOptions
from sessionmgr.testing.toy.sdk import ToyConnection, ToyConversation

if TYPE_CHECKING:
    from sessionmgr.adapter import RunContext

AGENT: Final = (sys.executable, "-I", "-S", str(Path(__file__).with_name("program.py")))


class ToyAdapter(ConversationAdapter[ConnectionSpec, ToyConnection, ToyDriver]):
    """Executes runs on the toy agent."""

    name = "toy"
    capabilities = Capabilities(
        streaming=NATIVE,
        tool_use=NATIVE,
        tool_approval=NATIVE,
        interrupt=NATIVE,
        steer=NATIVE,
        resume=NATIVE,
        usage=NATIVE,
    )
    # The agent asks about everything and has no sandbox: our answers implement all modes but one.
    permissions = PermissionMap(
        {mode: MappedMode("asks", Fidelity.EMULATED, confined=False) for mode in PermissionMode}
        | {PermissionMode.DEFAULT: MappedMode("asks", confined=False)}
    )
    options = ToyOptions
    connect = staticmethod(sdk.connect)

    def spec(self, run: RunContext) -> ConnectionSpec:
        """Return the command of the agent, in the run's directory and environment."""
        argv = ToyOptions.of(run.options).command or AGENT
        command = Command(argv=argv, cwd=run.cwd, env=dict(run.env))
        return ConnectionSpec(launcher=run.launcher, command=command)

    def make_driver(self, run: RunContext) -> ToyDriver:
        """Return the driver of a run."""
        return ToyDriver(run)

    async def open(
        self, run: RunContext, connection: ToyConnection, driver: ToyDriver
    ) -> ToyConversation:
        """Open the session that the run resumes, or a new one."""
        return await connection.open(ToyOpen(run.provider_session_id), driver)

    def is_fit(self, run: RunContext, driver: ToyDriver) -> bool:
        """Return whether to keep the agent: in an open turn it may still write about that."""
        return ToyOptions.of(run.options).keep and driver.ended is not None

    async def finish(self, run: RunContext, driver: ToyDriver) -> None:
        """Report the end of the run by the end of its turn."""
        ended = driver.ended
        assert ended is not None, "a run without it is cancelled or has failed"
        if ended.error is None:
            await run.finish(stop_reason=ended.reason)
        else:
            kind = FailureKind.PROVIDER_ERROR
            failure = Failure(kind=kind, message=ended.error, phase="turn")
            await run.fail(failure, stop_reason=ended.reason)
