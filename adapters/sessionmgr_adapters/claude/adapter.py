"""The adapter: what Claude Code can do, and how a run is played on it."""

from __future__ import annotations

import math
import os
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import trio

from sessionmgr.adapter import (
    NATIVE,
    Capabilities,
    Health,
    Mapped,
    PermissionMap,
    ProviderAdapter,
    RunContext,
    RunSpec,
)
from sessionmgr.adapter.kit.connection_pool import ConnectionPool
from sessionmgr.adapter.kit.exit_failure import process_exited, start_failure
from sessionmgr.adapter.kit.failures import config_invalid
from sessionmgr.adapter.kit.images import ImageRefusedError
from sessionmgr.errors import ProcessError
from sessionmgr.model import PermissionMode
from sessionmgr.model.permission import Fidelity
from sessionmgr_adapters.claude import sdk
from sessionmgr_adapters.claude.ending import end_run
from sessionmgr_adapters.claude.fallback import PATIENCE, Missed, Way, missed_by, notice
from sessionmgr_adapters.claude.launch import BYPASS, ENVIRONMENT, ClaudeSpec, make_spec
from sessionmgr_adapters.claude.login import health_of
from sessionmgr_adapters.claude.options import ClaudeOptions
from sessionmgr_adapters.claude.pictures import blocks_of
from sessionmgr_adapters.claude.plain import PlainRun
from sessionmgr_adapters.claude.refusals import refusal
from sessionmgr_adapters.claude.seat import Seat
from sessionmgr_adapters.claude.turn import Turn
from sessionmgr_adapters.claude.workspace import WorkspaceInvalidError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from sessionmgr.adapter import Options
    from sessionmgr.adapter.connections import Connect
    from sessionmgr.adapter.kit.connection_pool import Lease
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.sdk import ClaudeConnection

    Pool: TypeAlias = ConnectionPool[ClaudeSpec, Seat]

# Its own `acceptEdits` lets commands through that move and delete files, so edits are granted by
# us; and its own `plan` asks before it writes, so what is asked is denied by us.
PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: Mapped("default", confined=False),
        PermissionMode.ACCEPT_EDITS: Mapped("default", Fidelity.EMULATED, confined=False),
        PermissionMode.PLAN: Mapped("plan", Fidelity.EMULATED, confined=False),
        PermissionMode.FULL_AUTO: Mapped(BYPASS, confined=False),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: Mapped(BYPASS, confined=False),
    }
)
AFTER_A_CUT: Final = 2.0
"""Seconds for a child that did not obey to be gone, before its run is left."""


class ClaudeAdapter(ProviderAdapter):
    """Plays runs on Claude Code; `ClaudeOptions` says how."""

    name = "claude"
    display_name = "Claude Code"
    capabilities = Capabilities(
        streaming=NATIVE,
        reasoning=NATIVE,
        tool_use=NATIVE,
        tool_approval=NATIVE,
        system_prompt=NATIVE,
        interrupt=NATIVE,
        steer=NATIVE,
        resume=NATIVE,
        fork=NATIVE,
        structured_output=NATIVE,
        images_in=NATIVE,
        images_out=NATIVE,
        mcp=NATIVE,
        files=NATIVE,
        command_execution=NATIVE,
        web=NATIVE,
        plan_mode=NATIVE,
        max_turns=NATIVE,
        usage=NATIVE,
        cost=NATIVE,
        model_choice=NATIVE,
        effort=NATIVE,
    )
    permissions = PERMISSIONS
    options = ClaudeOptions
    serves = frozenset({"tools_allowed", "tools_denied", "directories"})
    resume_command = "claude --resume {id}"
    environment = ENVIRONMENT
    connect: ClassVar[Connect[ClaudeSpec, ClaudeConnection]] = staticmethod(sdk.connect)
    """The seam: a mock SDK is put here."""
    patience: ClassVar[float] = PATIENCE
    """Seconds for a child that is to be kept to say its first word."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: Pool = ConnectionPool(self._connect)
        self._turns: Final[dict[str, Turn]] = {}
        self._seats: Final[dict[str, Seat]] = {}
        self._plain: Final[dict[str, PlainRun]] = {}

    # --- a run -----------------------------------------------------------------------------------

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Say why a run would not be begun."""
        return refusal(spec, spec.options) if isinstance(spec.options, ClaudeOptions) else None

    async def run(self, run: RunContext) -> None:
        """Have a prompt answered, and tell what happens."""
        why_not = refusal(run, _options(run))
        try:
            prompt = await blocks_of(run.prompt, run.images, run.cwd)
            if why_not is not None:
                await run.fail(config_invalid(why_not))
            elif _options(run).text:
                await self._play_plainly(run)
            else:
                await self._play_in_frames(run, prompt)
        except ProcessError as error:
            await run.fail(start_failure(error))
        except (ImageRefusedError, WorkspaceInvalidError) as error:
            await run.fail(config_invalid(str(error)))

    async def _play_in_frames(self, run: RunContext, prompt: Json) -> None:
        """Play a run on a child that is kept, or as well as it can be had."""
        keep = _options(run).keep
        # What a child may spend counts from its start: it serves no other run.
        way = Way(is_own=not keep or run.budget.usd is not None, is_last=not keep)
        while True:
            missed = await self._play(run, prompt, way)
            match missed:
                case None:
                    return
                case Missed.WAS_DEAD:
                    continue
                case Missed.KNOWS_NO_FRAMES:
                    run.emit_nowait(*way.notes, notice(missed))
                    await self._play_plainly(run)
                    return
                case Missed.HUNG | Missed.DIED:
                    way = Way(is_own=True, is_last=True, notes=[notice(missed)])

    async def _play_plainly(self, run: RunContext) -> None:
        """Play a run on a child of its own that prints text; none else may have its session."""
        spec = _spec(run)
        seat = self._seats.get(spec.session)
        if seat is not None:
            async with self._pool.lease(seat.spec, run.connections) as lease:
                lease.abandon()
            await lease.connection.gone.wait()
        plain = self._plain[run.run_id] = PlainRun(run, spec, _options(run))
        try:
            await plain.play()
        finally:
            del self._plain[run.run_id]

    async def _play(self, run: RunContext, prompt: Json, way: Way) -> Missed | None:
        """Play a run on a child and tell how it ended, unless that has missed it."""
        seat: Seat | None = None
        try:
            async with self._lease(run, _spec(run), way) as lease:
                seat = lease.connection
                missed = await self._sit(run, lease, prompt, way)
            is_left = way.is_own or way.is_renamed or missed is not None
            if is_left or (lease.is_abandoned and run.cancelling is not None):
                await seat.gone.wait()  # and all that it has started with it
            facts = seat.connection.facts
            if way.is_own and missed is None and facts is not None:
                run.emit_nowait(process_exited(facts))
            return missed
        except BaseException:
            if seat is not None:
                seat.connection.hurried = True  # it has had its time
                with trio.move_on_after(AFTER_A_CUT, shield=True):
                    await seat.gone.wait()
            raise

    async def _sit(
        self, run: RunContext, lease: Lease[Seat], prompt: Json, way: Way
    ) -> Missed | None:
        seat = lease.connection
        was_used = seat.runs > 0
        conversation = await seat.connection.open(seat.spec)
        patience = math.inf if way.is_last else self.patience
        turn = Turn(run, seat, conversation, _options(run), way.notes, patience)
        self._turns[run.run_id] = turn
        try:
            await turn.play(prompt)
        finally:
            del self._turns[run.run_id]
        is_fit = not (turn.is_broken or turn.is_deaf or turn.leaves_work or run.was_silent)
        way.is_renamed = turn.state.session_id != seat.spec.session
        if seat.hello is None or not is_fit or way.is_own or way.is_renamed:
            lease.abandon()
        if turn.is_deaf:
            seat.connection.hurried = True
        if run.cancelling is not None:
            return None  # whoever stopped the run says how it ends
        missed = missed_by(turn, was_used=was_used)
        if way.is_last and missed is not Missed.KNOWS_NO_FRAMES:
            missed = None  # there is nothing else to try
        if missed is None:
            await end_run(run, turn, is_own=way.is_own)
        return missed

    @asynccontextmanager
    async def _lease(
        self, run: RunContext, spec: ClaudeSpec, way: Way
    ) -> AsyncGenerator[Lease[Seat], None]:
        """Use the child of the run's session if it fits; else end that, and start one."""
        while True:
            async with self._pool.lease(spec, run.connections) as lease:
                seat = lease.connection
                if seat.spec is spec or (not way.is_own and seat.fits(spec)):
                    yield lease
                    return
                lease.abandon()
            await seat.gone.wait()

    @asynccontextmanager
    async def _connect(self, spec: ClaudeSpec) -> AsyncGenerator[Seat, None]:
        """Start a child, once the one that served its session before is gone."""
        before = self._seats.get(spec.session)
        if before is not None:
            await before.gone.wait()
        seat: Seat | None = None
        try:
            async with type(self).connect(spec) as connection:
                seat = self._seats[spec.session] = Seat(spec, connection)
                yield seat
        finally:
            if seat is not None:
                seat.gone.set()
                if self._seats.get(spec.session) is seat:
                    del self._seats[spec.session]

    async def interrupt(self, run: RunContext) -> None:
        """Ask the agent to end its turn; `run` reads on until it has."""
        turn, plain = self._turns.get(run.run_id), self._plain.get(run.run_id)
        if plain is not None:
            plain.ended.set()
        if turn is not None:
            await turn.interrupt()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Give another message to the run, and wait to hear whether it was taken."""
        turn = self._turns.get(run.run_id)
        return turn is not None and await turn.add(content, message_id)

    def release(self, provider_session_id: str) -> None:
        """End the child that is kept for a session."""
        self._pool.retire(provider_session_id)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether Claude Code is installed and logged in."""
        assert isinstance(options, ClaudeOptions)
        if cls.connect is not sdk.connect:
            return Health()  # a mock SDK needs neither a program nor a login
        return health_of(options, env, cwd)

    async def health(self) -> Health:
        """Report whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(ClaudeOptions(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240


def _spec(run: RunContext) -> ClaudeSpec:
    """Say what a run needs: a session of its own for each try, unless it goes on with one."""
    return make_spec(run, _options(run), str(uuid.uuid4()))


def _options(run: RunContext) -> ClaudeOptions:
    assert isinstance(run.options, ClaudeOptions)
    return run.options
