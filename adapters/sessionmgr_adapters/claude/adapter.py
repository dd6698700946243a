"""Adapter of Claude Code: its capabilities, and the start and end of a run on it."""

from __future__ import annotations

import math
import os
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import trio
from msgspec.structs import replace

from sessionmgr.adapter import (
    NATIVE,
    Capabilities,
    Health,
    MappedMode,
    PermissionMap,
    RunContext,
    RunSpec,
)
from sessionmgr.adapter.kit import (
    ImageRefusedError,
    RunAdapter,
    SessionPool,
    config_failure,
    connection_failure,
    finish_with_output,
    process_exit_event,
    start_failure,
)
from sessionmgr.model import Fidelity, PermissionMode
from sessionmgr.process import ProcessError
from sessionmgr_adapters.claude import sdk
from sessionmgr_adapters.claude.claude_process import ClaudeProcess
from sessionmgr_adapters.claude.driver import ClaudeDriver
from sessionmgr_adapters.claude.failures import stderr_failure_kind
from sessionmgr_adapters.claude.fallback import (
    FIRST_FRAME_TIMEOUT,
    PlainRun,
    start_failure_of,
)
from sessionmgr_adapters.claude.launch import (
    BYPASS,
    CLAUDE_ENVIRONMENT,
    ClaudeSpec,
    make_claude_spec,
    start_fault,
)
from sessionmgr_adapters.claude.launch_strategy import LaunchStrategy, StartFailure, fallback_event
from sessionmgr_adapters.claude.login import claude_health
from sessionmgr_adapters.claude.options import ClaudeOptions
from sessionmgr_adapters.claude.outgoing import content_blocks
from sessionmgr_adapters.claude.phase import ClaudePhase
from sessionmgr_adapters.claude.session_file import is_session_stored, session_path
from sessionmgr_adapters.claude.tool_access import WorkspaceInvalidError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from sessionmgr.adapter import Connect, Options
    from sessionmgr.adapter.kit import ConnectionLease
    from sessionmgr.model import Failure, Json
    from sessionmgr_adapters.claude.sdk import ClaudeConnection

    Pool: TypeAlias = SessionPool[ClaudeSpec, ClaudeProcess]

# Its own `acceptEdits` also allows commands that move and delete files, so sessionmgr runs the mode
# `default` and approves edits itself. Its own `plan` asks before it writes, so sessionmgr denies
# these requests.
PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: MappedMode("default", confined=False),
        PermissionMode.ACCEPT_EDITS: MappedMode("default", Fidelity.EMULATED, confined=False),
        PermissionMode.PLAN: MappedMode("plan", Fidelity.EMULATED, confined=False),
        PermissionMode.FULL_AUTO: MappedMode(BYPASS, confined=False),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: MappedMode(BYPASS, confined=False),
    }
)
EXIT_WAIT_AFTER_CUT: Final = 2.0
"""Seconds to wait for the exit of a process that did not react, before its run ends."""


class ClaudeAdapter(RunAdapter[ClaudeDriver | PlainRun]):
    """Adapter that executes runs on Claude Code; `ClaudeOptions` are its options."""

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
    environment = CLAUDE_ENVIRONMENT
    connect: ClassVar[Connect[ClaudeSpec, ClaudeConnection]] = staticmethod(sdk.connect_claude)
    """Opens a connection to a process; tests replace it by a mock SDK."""
    patience: ClassVar[float] = FIRST_FRAME_TIMEOUT
    """Seconds to wait for the first frame of a kept process."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: Pool = SessionPool(self._start_process)

    # --- a run -----------------------------------------------------------------------------------

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a run would be refused."""
        return start_fault(spec, spec.options) if isinstance(spec.options, ClaudeOptions) else None

    async def run(self, run: RunContext) -> None:
        """Execute one run: send the prompt, and report events and the end."""
        why_not = start_fault(run, _options(run))
        try:
            prompt = await content_blocks(run.prompt, run.images, run.cwd)
            if why_not is not None:
                await run.fail(config_failure(why_not))
            elif _options(run).text:
                await self._run_plain(run)
            else:
                await self._run_streaming(run, prompt)
        except ProcessError as error:
            await run.fail(start_failure(error))
        except (ImageRefusedError, WorkspaceInvalidError) as error:
            await run.fail(config_failure(str(error)))

    async def _run_streaming(self, run: RunContext, prompt: Json) -> None:
        """Execute the run on a kept process; if its start fails, on the fallbacks."""
        keep = _options(run).keep
        # Claude Code counts a budget from the start of its process, which therefore serves no other
        # run.
        strategy = LaunchStrategy(is_own=not keep or run.budget.usd is not None, is_last=not keep)
        while True:
            failure = await self._run_with_fallback(run, prompt, strategy)
            match failure:
                case None:
                    return
                case StartFailure.WAS_DEAD:
                    continue  # the pool has dropped the process, so this starts another
                case StartFailure.KNOWS_NO_FRAMES:
                    run.emit_nowait(*strategy.notes, fallback_event(failure))
                    await self._run_plain(run)
                    return
                case StartFailure.HUNG | StartFailure.DIED:
                    strategy = LaunchStrategy(
                        is_own=True, is_last=True, notes=[fallback_event(failure)]
                    )

    async def _run_plain(self, run: RunContext) -> None:
        """Execute the run in plain text, once no other process has its session."""
        spec = _make_run_spec(run)
        await self._pool.end(spec.session)
        plain = PlainRun(run, spec, _options(run))
        with self.active_runs(run, plain):
            await plain.answer_prompt()

    async def _run_with_fallback(
        self, run: RunContext, prompt: Json, strategy: LaunchStrategy
    ) -> StartFailure | None:
        """Execute the run on one process and report the end, unless the start failed."""
        process: ClaudeProcess | None = None
        try:
            async with self._pool.lease(
                _make_run_spec(run), run.connections, alone=strategy.is_own
            ) as lease:
                process = lease.connection
                failure = await self._run_driver(run, lease, prompt, strategy)
            is_left = strategy.is_own or strategy.is_renamed or failure is not None
            # A fallback, or the next attempt, may resume the session only once no process has it.
            if is_left or (lease.is_abandoned and run.cancelling is not None):
                await process.gone.wait()  # including everything that it has started
            facts = process.connection.facts
            if strategy.is_own and failure is None and facts is not None:
                run.emit_nowait(process_exit_event(facts))
            return failure
        except BaseException:
            if process is not None:
                process.connection.hurried = True  # its grace is over
                with trio.move_on_after(EXIT_WAIT_AFTER_CUT, shield=True):
                    await process.gone.wait()
            raise

    async def _run_driver(
        self,
        run: RunContext,
        lease: ConnectionLease[ClaudeProcess],
        prompt: Json,
        strategy: LaunchStrategy,
    ) -> StartFailure | None:
        process = lease.connection
        was_used = process.runs > 0
        patience = math.inf if strategy.is_last else self.patience
        driver = ClaudeDriver(run, process, _options(run), prompt, strategy, patience)
        conversation = await process.connection.open(process.spec, driver)
        with self.active_runs(run, driver):
            await driver.run_conversation(conversation)
        strategy.is_renamed = driver.state.session_id != process.spec.session
        is_fit = driver.is_reusable and process.info is not None and not run.was_silent
        if not is_fit or strategy.is_own or strategy.is_renamed:
            lease.abandon()
        if driver.phase is ClaudePhase.SILENT:
            process.connection.hurried = True
        if run.cancelling is not None:
            return None  # the component that stopped the run ends it
        failure = start_failure_of(driver, was_used=was_used)
        if strategy.is_last and failure is not StartFailure.KNOWS_NO_FRAMES:
            failure = None  # there is no other fallback
        if failure is None:
            driver.emit_notes()
            await _finish_run(driver, is_own=strategy.is_own)
        return failure

    @asynccontextmanager
    async def _start_process(self, spec: ClaudeSpec) -> AsyncGenerator[ClaudeProcess, None]:
        async with type(self).connect(spec) as connection:
            yield ClaudeProcess(spec, connection)

    def release(self, provider_session_id: str) -> None:
        """End the process that is kept for a session."""
        self._pool.retire(provider_session_id)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether Claude Code is installed and logged in."""
        assert isinstance(options, ClaudeOptions)
        return claude_health(options, env, cwd)

    async def health(self) -> Health:
        """Report whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(ClaudeOptions(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240


def _make_run_spec(run: RunContext) -> ClaudeSpec:
    """Return the spec of a run's process; unless it resumes a session, it gets a new one."""
    return make_claude_spec(run, _options(run), str(uuid.uuid4()))


def _options(run: RunContext) -> ClaudeOptions:
    assert isinstance(run.options, ClaudeOptions)
    return run.options


async def _finish_run(driver: ClaudeDriver, *, is_own: bool) -> None:
    """Report the end of a run, from its last result or from the end of its process."""
    run, result, why = driver.run, driver.result, driver.state.failure
    stop_reason = result.ended_by if result else None
    if driver.failure is not None:
        await run.fail(driver.failure)
    elif result is None or driver.phase is ClaudePhase.LOST:
        await run.fail(why or await _exit_failure(driver, is_own=is_own))
    elif why is not None:
        await run.fail(why, stop_reason=stop_reason)
    else:
        await finish_with_output(run, result.structured_output, stop_reason=stop_reason)


async def _exit_failure(driver: ClaudeDriver, *, is_own: bool) -> Failure:
    spec, has_begun = driver.process.spec, driver.state.started
    connection = driver.process.connection
    failure = connection_failure(connection, phase="turn" if has_begun else "start")
    if connection.facts is not None:
        if not is_own:  # otherwise it is reported once its process is gone
            driver.emit(process_exit_event(connection.facts))
        kind = None if has_begun else stderr_failure_kind(connection.tail.text())
        failure = replace(failure, kind=kind or failure.kind, retryable=kind is None)
    # Another process can resume the session if the prompt is on disk.
    session = driver.state.session_id or spec.session
    path = session_path(session, spec.command.cwd, spec.command.env)
    return replace(failure, resumable=has_begun and await is_session_stored(path))
