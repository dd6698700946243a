"""The adapter: what Codex can do, and how a run is played on it."""

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
    "system_prompt: codex exec goes on with the one that its thread was begun with: leave it out, "
    "or say another one without exec"
)
MAX_THREADS: Final = 64
"""Threads that one app-server serves at once."""


class CodexAdapter(RunAdapter[CodexDriver | ExecRun]):
    """Plays runs on Codex; `CodexOptions` says how."""

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
    """What is left of it where a run has a `codex exec` of its own."""
    permissions = PERMISSIONS
    options = CodexOptions
    serves = frozenset({"directories"})
    resume_command = "codex resume {id}"
    environment = launch.CODEX_ENVIRONMENT
    connect: ClassVar[Connect[ConnectionSpec, CodexConnection]] = staticmethod(sdk.connect_codex)
    """The seam: a mock SDK is put here."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: Pool = ConnectionPool(type(self).connect, max_leases=MAX_THREADS)
        self._meters: Final = ThreadMeters()
        self._prompts: Final = SystemPromptCache()
        self._warned: Final[set[str]] = set()
        """Warnings of Codex that concern no thread: it repeats them in each thread."""
        self._configs: Final[WeakKeyDictionary[CodexConnection, ConfigCache]] = WeakKeyDictionary()
        """What each app-server that was used has said of its configuration."""
        self._kept: Final[WeakValueDictionary[str, CodexConnection]] = WeakValueDictionary()
        """Which app-server keeps a thread."""
        self._busy: Final[set[str]] = set()
        """Threads that a run is on."""

    @classmethod
    def declares(cls, environ: Mapping[str, str]) -> EnvironmentSpec:
        """Return the variables of our environment that Codex gets."""
        return launch.declared_variables(environ)

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Say what a run with these options can have."""
        assert isinstance(options, CodexOptions)
        return cls.by_exec if options.exec else cls.capabilities

    # --- a run -----------------------------------------------------------------------------------

    async def run(self, run: RunContext) -> None:
        """Have a prompt answered, and tell what happens."""
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
        """Return why a run is not begun."""
        fault = await _request_fault(run, options)
        if fault is not None:
            return config_failure(fault)
        if options.exec and not await self._has_system_prompt(run):
            return config_failure(_ANOTHER)
        rules = None if options.exec else launch.loose_rules_file(run, options)
        if rules is not None:
            return _loose_rules_failure(run, rules)
        # Codex would take a second turn for more of the first. Nothing is awaited from here on.
        if thread and thread in {*self._busy, *(each.thread for each in self._runs.values())}:
            message = f"another run is on the thread {thread}"
            return Failure(kind=FailureKind.SESSION_BUSY, message=message, phase="start")
        return None

    async def _run_with_retries(
        self, run: RunContext, options: CodexOptions, limits: SandboxBounds
    ) -> None:
        """Play a run on a thread of an app-server."""
        content = launch.prompt_content(run.prompt, await read_images(run.images, run.cwd))
        asked = CodexRunRequest(options, limits, content, self._prompts, self._warned)
        spec = launch.make_server_spec(run, options)
        tries = 1
        while not await self._run_attempt(run, spec, asked, tries):
            await trio.sleep(failures.retry_delay(tries))
            tries += 1

    async def _run_exec(
        self, run: RunContext, options: CodexOptions, limits: SandboxBounds
    ) -> None:
        """Play a run on a process of its own."""
        await read_images(run.images, run.cwd)  # Codex passes over what is none
        await self._release_thread(run, None)
        spec = one_shot_spec(run, options, limits)
        once = ExecRun(run, spec, self._meters)
        try:
            with self.active_runs(run, once):
                await once.execute()
        finally:
            if once.thread:
                before = run.provider_session_id
                self._prompts.note(once.thread, run.system_prompt, before=before)

    async def _has_system_prompt(self, run: RunContext) -> bool:
        """Say whether the thread that a run goes on in has the system prompt that it is given."""
        thread, text = run.provider_session_id, run.system_prompt
        if thread is None or text is None:
            return True
        if thread in self._prompts:
            return self._prompts.is_current(thread, text)
        return await is_recorded(launch.codex_home(run, CodexOptions.of(run.options)), thread, text)

    async def _run_attempt(
        self, run: RunContext, spec: ConnectionSpec, asked: CodexRunRequest, tries: int
    ) -> bool:
        """Play a run and tell how it ended, unless its app-server is to be started again."""
        async with self._pool.lease(spec, run.connections) as lease:
            connection = lease.connection
            was_used = connection in self._configs
            configs = self._configs.setdefault(connection, ConfigCache())
            await self._release_thread(run, connection)
            driver = await self._run_driver(run, lease, asked, configs)
            if driver.keeps_session():
                self._kept[driver.thread] = connection
            if run.cancelling is not None:
                return True  # whoever stopped the run says how it ends
            if driver.phase is CodexPhase.UNREACHED and not driver.state.started:
                if was_used and tries < failures.MAX_STARTS:
                    return False  # it was dead already, and nobody had noticed
                if failures.lost_start_race(connection.tail.text(), tries):
                    run.emit_nowait(failures.start_retry_event(tries))
                    return False
            await _finish_run(run, driver, connection)
            return True

    async def _release_thread(self, run: RunContext, wanted: CodexConnection | None) -> None:
        """Unload a run's thread from an app-server that is not the one `wanted`."""
        keeper = self._kept.pop(run.provider_session_id or "", None)
        if keeper is not None and keeper is not wanted:
            await keeper.cache.release(run.provider_session_id or "")

    async def _run_driver(
        self,
        run: RunContext,
        lease: ConnectionLease[CodexConnection],
        asked: CodexRunRequest,
        configs: ConfigCache,
    ) -> CodexDriver:
        driver = CodexDriver(run, asked, configs)
        with self.active_runs(run, driver):
            await driver.run_conversation(await lease.connection.open(run.run_id, driver))
        if driver.is_unresponsive or driver.is_lost or run.was_silent:
            lease.abandon()
        return driver

    def release(self, provider_session_id: str) -> None:
        """Unload the thread that is kept for a session: while loaded it is closed to others."""
        keeper = self._kept.pop(provider_session_id, None)
        if keeper is not None:
            keeper.cache.drop(provider_session_id)

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
    """Tell how a run ended that nobody else has ended."""
    end = driver.last_turn
    if driver.failure is not None:
        await run.fail(driver.failure)
    elif driver.is_lost or end is None:
        await run.fail(_connection_failure(driver, connection))
    else:
        await finish_by_last_turn(run, end, driver.state)


def _connection_failure(driver: CodexDriver, connection: CodexConnection) -> Failure:
    """Return the failure that the end of an app-server is for a run that was on it."""
    begun = driver.state.started
    phase = "turn" if begun else "start"
    if connection.facts is None:
        message = "the connection to the app-server ended in the middle of a turn"
        failure = Failure(kind=FailureKind.PROTOCOL_ERROR, message=message, phase=phase)
    else:
        failure = exit_failure(
            connection.facts, failures.stderr_tail_message(connection.tail), phase=phase
        )
        failure = replace(failure, message=f"the app-server is gone: {failure.message}")
    was_killed = connection.facts is not None and connection.facts.signal is not None
    return failures.without_directories(
        replace(failure, retryable=begun or was_killed, resumable=begun)
    )


async def _request_fault(run: RunContext, options: CodexOptions) -> str | None:
    """Return which wish of a run cannot be granted, before anything is started for it."""
    await trio.lowlevel.checkpoint()
    if options.fork and run.provider_session_id is None:
        return "options.fork: there is nothing to fork, the session has no thread yet"
    if options.home is not None and not await (trio.Path(run.cwd) / options.home).is_dir():
        return f"options.home: there is no directory {options.home}"
    fault = schema_fault(run.schema)
    return None if fault is None else f"schema: {fault}"


def _loose_rules_failure(run: RunContext, rules: Path) -> Failure:
    """Return the failure for rules that let commands out of a mode's sandbox."""
    message = (
        f"the rules in {rules} let commands out of the sandbox, in {run.permission.asked.value} "
        "as well: exec=true leaves them out, rules=true has them hold"
    )
    return Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="start")
