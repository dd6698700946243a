"""The adapter: what the toy agent can do, and how a run is played on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import trio

from sessionmgr.adapter import (
    NATIVE,
    Capabilities,
    Mapped,
    PermissionMap,
    ProviderAdapter,
    RunContext,
)
from sessionmgr.adapter.connections import ConnectionSpec
from sessionmgr.adapter.kit.connection_pool import ConnectionPool
from sessionmgr.adapter.kit.exit_failure import exit_failure, process_exited, start_failure
from sessionmgr.errors import ProcessError
from sessionmgr.model import Failure, FailureKind, PermissionMode
from sessionmgr.process import Command
from sessionmgr.testing.toy import sdk
from sessionmgr.testing.toy.driver import ToyDriver
from sessionmgr.testing.toy.frames import Open
from sessionmgr.testing.toy.options import ToyOptions

if TYPE_CHECKING:
    from sessionmgr.adapter.connections import Connect
    from sessionmgr.testing.toy.sdk import ToyConnection

    Pool: TypeAlias = ConnectionPool[ConnectionSpec, ToyConnection]

PROGRAM: Final = str(Path(__file__).with_name("program.py"))

# The agent asks about everything, so every mode is what is answered, and it confines nothing.
PERMISSIONS: Final = PermissionMap(
    {mode: Mapped("asks", confined=False) for mode in PermissionMode}
)


def agent() -> tuple[str, ...]:
    """Return the argv of the agent that comes with this adapter."""
    return (sys.executable, "-I", "-S", PROGRAM)


class ToyAdapter(ProviderAdapter):
    """Plays runs on the toy agent."""

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
    permissions = PERMISSIONS
    options = ToyOptions
    connect: ClassVar[Connect[ConnectionSpec, ToyConnection]] = staticmethod(sdk.connect)
    """The seam: a mock SDK is put here."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: Pool = ConnectionPool(type(self).connect)
        self._drivers: dict[str, ToyDriver] = {}

    async def run(self, run: RunContext) -> None:
        """Play one run: one turn of the agent's."""
        spec = ConnectionSpec(launcher=run.launcher, command=_command(run))
        try:
            async with self._pool.lease(spec, run.connections) as lease:
                driver = self._drivers[run.run_id] = ToyDriver(run)
                try:
                    opening = Open(run.provider_session_id)
                    await driver.play(await lease.connection.open(opening, driver))
                finally:
                    del self._drivers[run.run_id]
                # What it still has to say about a turn that did not end must not reach the next.
                if not _options(run).keep or run.was_silent or driver.ended is None:
                    lease.abandon()
                await _end(run, driver, lease.connection)
        except ProcessError as error:
            await run.fail(start_failure(error))

    async def interrupt(self, run: RunContext) -> None:
        """Ask the agent to end its turn; `run` reads on until it has."""
        driver = self._drivers.get(run.run_id)
        if driver is not None:
            await driver.interrupt()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Give another message to the turn, and wait to hear whether it was taken."""
        driver = self._drivers.get(run.run_id)
        return driver is not None and await driver.add(content, message_id)


async def _end(run: RunContext, driver: ToyDriver, connection: ToyConnection) -> None:
    """Tell how the run ended, if that is the agent's to say."""
    if driver.ended is None:
        facts = connection.facts
        if facts is not None:
            run.emit_nowait(process_exited(facts))
        if run.cancelling is None:
            await run.fail(_broken_off(connection))
    elif run.cancelling is not None:
        await trio.lowlevel.checkpoint()  # it obeyed; whoever stopped the run says how it ends
    elif driver.ended.error is not None:
        await run.fail(
            Failure(kind=FailureKind.PROVIDER_ERROR, message=driver.ended.error, phase="turn"),
            stop_reason=driver.ended.reason,
        )
    else:
        await run.finish(stop_reason=driver.ended.reason)


def _broken_off(connection: ToyConnection) -> Failure:
    """Say what it means that the agent went in the middle of a turn; exit code 0 is no success."""
    if connection.facts is None:
        message = "the connection ended in the middle of a turn"
        return Failure(kind=FailureKind.PROTOCOL_ERROR, message=message, phase="turn")
    return exit_failure(connection.facts, connection.tail)


def _options(run: RunContext) -> ToyOptions:
    assert isinstance(run.options, ToyOptions)
    return run.options


def _command(run: RunContext) -> Command:
    given = _options(run).command
    return Command(argv=given or agent(), cwd=run.cwd, env=dict(run.env))
