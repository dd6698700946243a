"""The Codex adapter: its capabilities, and how it runs a session's prompts.

A run normally uses a thread of a shared app-server (`CodexDriver`). With `options.exec` it has a
`codex exec` process of its own (`ExecRun`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

import trio
from msgspec.structs import replace

from sessionmgr.adapter import (
    NATIVE,
    UNSUPPORTED,
    Capabilities,
    Health,
    RunContext,
)
from sessionmgr.adapter.kit import (
    ConnectionPool,
    ImageRefusedError,
    RunAdapter,
    config_failure,
    exit_failure,
    read_images,
    schema_fault,
    start_failure,
)
from sessionmgr.model import Failure, FailureKind
from sessionmgr.process import ProcessError
from sessionmgr_adapters.codex import failures, launch, sdk
from sessionmgr_adapters.codex.config import ConfigCache, ConfigFileError
from sessionmgr_adapters.codex.configure import CodexRunRequest
from sessionmgr_adapters.codex.driver import CodexDriver, finish_by_last_turn
from sessionmgr_adapters.codex.exec import ExecRun, ThreadMeters, make_exec_spec as one_shot_spec
from sessionmgr_adapters.codex.login import codex_health
from sessionmgr_adapters.codex.options import CodexOptions
from sessionmgr_adapters.codex.permissions import PERMISSIONS
from sessionmgr_adapters.codex.phase import CodexPhase
from sessionmgr_adapters.codex.system_prompts import SystemPromptCache, is_recorded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sessionmgr.adapter import Connect, ConnectionSpec, Options
    from sessionmgr.adapter.kit import ConnectionLease
    from sessionmgr.process import EnvironmentSpec
    from sessionmgr_adapters.codex.permissions import SandboxBounds
    from sessionmgr_adapters.codex.sdk import CodexConnection

    Pool: TypeAlias = ConnectionPool[ConnectionSpec, CodexConnection]

_ANOTHER: Final = (
    "system_prompt: codex exec cannot change the system prompt of a thread; remove it, "
    "or set exec=false"
)
MAX_THREADS: Final = 64
"""Threads that one app-server serves at once."""


class CodexAdapter(RunAdapter[CodexDriver | ExecRun]):
    """The provider adapter for Codex; `CodexOptions` are its options."""

    name = "codex"
    display_name = "Codex"
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
        mcp=NATIVE,
        files=NATIVE,
        command_execution=NATIVE,
        web=NATIVE,
        usage=NATIVE,
        model_choice=NATIVE,
        effort=NATIVE,
    )
    by_exec: ClassVar = capabilities.narrowed(
        dict.fromkeys(("streaming", "tool_approval", "steer"), UNSUPPORTED)
    )
    """The capabilities of a run with `options.exec`."""
    permissions = PERMISSIONS
    options = CodexOptions
    serves = frozenset({"directories"})
    resume_command = "codex resume {id}"
    environment = launch.CODEX_ENVIRONMENT
    connect: ClassVar[Connect[ConnectionSpec, CodexConnection]] = staticmethod(sdk.connect_codex)
    """Opens a connection to an app-server; tests replace it by a mock."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: Pool = ConnectionPool(type(self).connect, max_leases=MAX_THREADS)
        self._meters: Final = ThreadMeters()
        self._prompts: Final = SystemPromptCache()
        self._warned: Final[set[str]] = set()
        """Warnings about no thread: Codex repeats them in each one, the adapter does not."""
        self._configs: Final[WeakKeyDictionary[CodexConnection, ConfigCache]] = WeakKeyDictionary()
        """The configuration that each used app-server has reported."""
        self._kept: Final[WeakValueDictionary[str, CodexConnection]] = WeakValueDictionary()
        """The app-server that keeps a thread loaded, by thread."""
        self._busy: Final[set[str]] = set()
        """Threads that a run is using."""

    @classmethod
    def declares(cls, environ: Mapping[str, str], options: Options) -> EnvironmentSpec:
        """Return the variables of our environment that Codex receives."""
        return launch.declared_variables(environ)

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Return the capabilities of a run with these options."""
        assert isinstance(options, CodexOptions)
        return cls.by_exec if options.exec else cls.capabilities

    # --- runs ------------------------------------------------------------------------------------

    async def run(self, run: RunContext) -> None:
        """Run a prompt and report its events and its end."""
        options = CodexOptions.of(run.options)
        thread = "" if options.fork else run.provider_session_id or ""
        failure = await self._refusal(run, options, thread)
        if failure is not None:
            await run.fail(failure)
            return
        self._busy.add(thread)
        try:
            with launch.sandbox_bounds(run, options) as limits:
                if options.exec:
                    await self._run_exec(run, options, limits)
                else:
                    await self._run_with_retries(run, options, limits)
        except ProcessError as error:
            await run.fail(start_failure(error))
        except (ConfigFileError, ImageRefusedError) as error:
            await run.fail(config_failure(str(error)))
        finally:
            self._busy.discard(thread)

    async def _refusal(self, run: RunContext, options: CodexOptions, thread: str) -> Failure | None:
        """Return the failure that prevents a run from starting, if there is one."""
        fault = await _request_fault(run, options)
        if fault is not None:
            return config_failure(fault)
        if options.exec and not await self._has_system_prompt(run):
            return config_failure(_ANOTHER)
        rules = None if options.exec else launch.loose_rules_file(run, options)
        if rules is not None:
            return _loose_rules_failure(run, rules)
        # Codex would treat a second turn as more input of the first. There must be no await between
        # this check and the caller's entry in `_busy`.
        if thread and thread in {*self._busy, *(each.thread for each in self._runs.values())}:
            message = f"another run uses the thread {thread}"
            return Failure(kind=FailureKind.SESSION_BUSY, message=message, phase="start")
        return None

    async def _run_with_retries(
        self, run: RunContext, options: CodexOptions, limits: SandboxBounds
    ) -> None:
        """Run on a thread of an app-server; repeat a start that failed transiently."""
        content = launch.prompt_content(run.prompt, await read_images(run.images, run.cwd))
        request = CodexRunRequest(options, limits, content, self._prompts, self._warned)
        spec = launch.make_server_spec(run, options)
        tries = 1
        while not await self._run_attempt(run, spec, request, tries):
            await trio.sleep(failures.retry_delay(tries))
            tries += 1

    async def _run_exec(
        self, run: RunContext, options: CodexOptions, limits: SandboxBounds
    ) -> None:
        """Run in a `codex exec` process of its own."""
        await read_images(run.images, run.cwd)  # Codex silently ignores unreadable images
        await self._release_thread(run, None)
        spec = one_shot_spec(run, options, limits)
        exec_run = ExecRun(run, spec, self._meters)
        try:
            with self.active_runs(run, exec_run):
                await exec_run.execute()
        finally:
            if exec_run.thread:
                before = run.provider_session_id
                self._prompts.note(exec_run.thread, run.system_prompt, before=before)

    async def _has_system_prompt(self, run: RunContext) -> bool:
        """Whether the run's thread already has the system prompt that the run asks for."""
        thread, text = run.provider_session_id, run.system_prompt
        if thread is None or text is None:
            return True
        if thread in self._prompts:
            return self._prompts.is_current(thread, text)
        return await is_recorded(launch.codex_home(run, CodexOptions.of(run.options)), thread, text)

    async def _run_attempt(
        self, run: RunContext, spec: ConnectionSpec, request: CodexRunRequest, tries: int
    ) -> bool:
        """Run once and report the end; return False if the app-server must be started again."""
        async with self._pool.lease(spec, run.connections) as lease:
            connection = lease.connection
            was_used = connection in self._configs
            configs = self._configs.setdefault(connection, ConfigCache())
            await self._release_thread(run, connection)
            driver = await self._run_driver(run, lease, request, configs)
            if driver.keeps_session():
                self._kept[driver.thread] = connection
            if run.cancelling is not None:
                return True  # the manager, which cancelled the run, writes its end
            if driver.phase is CodexPhase.UNREACHED and not driver.state.started:
                if was_used and tries < failures.MAX_STARTS:
                    return False  # the shared server had died before this run reached it
                if failures.lost_start_race(connection.tail.text(), tries):
                    run.emit_nowait(failures.start_retry_event(tries))
                    return False
            await _finish_run(run, driver, connection)
            return True

    async def _release_thread(self, run: RunContext, wanted: CodexConnection | None) -> None:
        """Unload a run's thread from the app-server that keeps it, unless that is `wanted`."""
        owner = self._kept.pop(run.provider_session_id or "", None)
        if owner is not None and owner is not wanted:
            await owner.cache.release(run.provider_session_id or "")

    async def _run_driver(
        self,
        run: RunContext,
        lease: ConnectionLease[CodexConnection],
        request: CodexRunRequest,
        configs: ConfigCache,
    ) -> CodexDriver:
        driver = CodexDriver(run, request, configs)
        with self.active_runs(run, driver):
            await driver.run_conversation(await lease.connection.open(run.run_id, driver))
        if driver.is_unresponsive or driver.is_lost or run.was_silent:
            lease.abandon()
        return driver

    def release(self, provider_session_id: str) -> None:
        """Unload the thread that is kept for a session, so that other programs can open it."""
        owner = self._kept.pop(provider_session_id, None)
        if owner is not None:
            owner.cache.unload_if_idle(provider_session_id)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether Codex is installed and logged in."""
        assert isinstance(options, CodexOptions)
        return codex_health(options, env, cwd)

    async def health(self) -> Health:
        """Report whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(CodexOptions(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240


async def _finish_run(run: RunContext, driver: CodexDriver, connection: CodexConnection) -> None:
    """Report how a run ended that was not cancelled."""
    end = driver.last_turn
    if driver.failure is not None:
        await run.fail(driver.failure)
    elif driver.is_lost or end is None:
        await run.fail(_connection_failure(driver, connection))
    else:
        await finish_by_last_turn(run, end, driver.state)


def _connection_failure(driver: CodexDriver, connection: CodexConnection) -> Failure:
    """Return the failure of a run whose app-server exited or whose connection ended."""
    has_started = driver.state.started
    phase = "turn" if has_started else "start"
    if connection.facts is None:
        message = "the connection to the app-server ended in the middle of a turn"
        failure = Failure(kind=FailureKind.PROTOCOL_ERROR, message=message, phase=phase)
    else:
        failure = exit_failure(
            connection.facts, failures.stderr_tail_message(connection.tail), phase=phase
        )
        failure = replace(failure, message=f"the app-server has exited: {failure.message}")
    was_killed = connection.facts is not None and connection.facts.signal is not None
    return failures.without_directories(
        replace(failure, retryable=has_started or was_killed, resumable=has_started)
    )


async def _request_fault(run: RunContext, options: CodexOptions) -> str | None:
    """Return what is wrong with a run's options, checked before anything is started."""
    await trio.lowlevel.checkpoint()
    if options.fork and run.provider_session_id is None:
        return "options.fork: the session has no thread to fork yet"
    if options.home is not None and not await (trio.Path(run.cwd) / options.home).is_dir():
        return f"options.home: no such directory: {options.home}"
    fault = schema_fault(run.schema)
    return None if fault is None else f"schema: {fault}"


def _loose_rules_failure(run: RunContext, rules: Path) -> Failure:
    """Return the failure for rules files that allow commands outside of a mode's sandbox."""
    message = (
        f"the rules in {rules} allow commands outside of the sandbox, in "
        f"{run.permission.asked.value} as well; set exec=true to ignore them, or rules=true to "
        "apply them"
    )
    return Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="start")
