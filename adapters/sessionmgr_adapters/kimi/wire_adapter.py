"""Runs on the wire of kimi-cli 1.50: what they can, and how they start and end."""

from __future__ import annotations

import os
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import NATIVE, Capabilities, Health, MappedMode, PermissionMap
from sessionmgr.adapter.kit import (
    ConversationAdapter,
    SessionPool,
    connection_failure,
    missing_program_reason,
)
from sessionmgr.model import Fidelity, PermissionMode
from sessionmgr_adapters.kimi import sdk
from sessionmgr_adapters.kimi.driver import KimiDriver
from sessionmgr_adapters.kimi.installation import INSTALL, program_fault
from sessionmgr_adapters.kimi.launch import (
    KIMI_ENVIRONMENT,
    YOLO,
    KimiSpec,
    make_kimi_spec,
    missing_session_failure,
    start_failure_of,
)
from sessionmgr_adapters.kimi.options import KimiOptions
from sessionmgr_adapters.kimi.sdk import KimiProcess

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from sessionmgr.adapter import Options, RunContext, RunSpec
    from sessionmgr.model import Failure
    from sessionmgr_adapters.kimi.sdk import KimiConversation

# It asks about every edit and command, or, in yolo mode, about none; it has no sandbox.
PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: MappedMode("asks", confined=False),
        PermissionMode.ACCEPT_EDITS: MappedMode("asks", Fidelity.EMULATED, confined=False),
        PermissionMode.PLAN: MappedMode("plan", Fidelity.EMULATED, confined=False),
        PermissionMode.FULL_AUTO: MappedMode(YOLO, confined=False),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: MappedMode(YOLO, confined=False),
    }
)


class KimiWireAdapter(ConversationAdapter[KimiSpec, KimiProcess, KimiDriver]):
    """The adapter of runs without `options.code`."""

    name = "kimi"
    display_name = "kimi-cli"
    capabilities = Capabilities(
        streaming=NATIVE,
        reasoning=NATIVE,
        tool_use=NATIVE,
        tool_approval=NATIVE,
        interrupt=NATIVE,
        steer=NATIVE,
        resume=NATIVE,
        images_in=NATIVE,
        images_out=NATIVE,
        files=NATIVE,
        command_execution=NATIVE,
        web=NATIVE,
        plan_mode=NATIVE,
        max_turns=NATIVE,
        usage=NATIVE,
        model_choice=NATIVE,
    )
    permissions = PERMISSIONS
    options = KimiOptions
    serves = frozenset({"directories"})
    resume_command = "kimi-cli --session {id}"
    environment = KIMI_ENVIRONMENT
    connect = staticmethod(sdk.connect_kimi)

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a run would be refused."""
        failure = start_failure_of(spec)
        return None if failure is None else failure.message

    async def run(self, run: RunContext) -> None:
        """Execute one run: send the prompt, and report events and the end."""
        failure = start_failure_of(run) or self.missing_session(run)
        if failure is None:
            await super().run(run)
        else:
            await run.fail(failure)

    def missing_session(self, run: RunContext) -> Failure | None:
        """Return the failure if Kimi lacks the run's session; tests without files replace it."""
        return missing_session_failure(run)

    def make_pool(self) -> SessionPool[KimiSpec, KimiProcess]:
        """Return the pool of processes: one for each session."""
        return SessionPool(self._start_process)

    @asynccontextmanager
    async def _start_process(self, spec: KimiSpec) -> AsyncGenerator[KimiProcess, None]:
        async with type(self).connect(spec) as connection:
            yield KimiProcess(spec, connection)

    def spec(self, run: RunContext) -> KimiSpec:
        """Return the spec of the process of the run's session; without one, of a new session."""
        return make_kimi_spec(run, str(uuid.uuid4()))

    def make_driver(self, run: RunContext) -> KimiDriver:
        """Return the driver of a run."""
        return KimiDriver(run)

    async def open(
        self, run: RunContext, connection: KimiProcess, driver: KimiDriver
    ) -> KimiConversation:
        """Open the run's conversation on its process."""
        driver.process = connection
        return await connection.connection.open(connection.spec, driver)

    def is_fit(self, run: RunContext, driver: KimiDriver) -> bool:
        """Whether to keep the process: nothing of this run may go on in it.

        A process that a tool has started may outlive the interrupt that ends the tool.
        """
        is_cut_short = run.cancelling is not None and driver.state.used_tools
        is_quiet = driver.answer is not None and not driver.state.has_tasks
        return KimiOptions.of(run.options).keep and is_quiet and not is_cut_short

    async def finish(self, run: RunContext, driver: KimiDriver) -> None:
        """Report the end of the run by the answer to its prompt."""
        if driver.failure is None:
            await run.finish(stop_reason="finished")
        else:
            await run.fail(driver.failure)

    def lost_failure(self, driver: KimiDriver, connection: KimiProcess) -> Failure:
        """Return the failure of a run whose process exited before the turn ended."""
        return driver.lost_failure(connection_failure(connection))

    def release(self, provider_session_id: str) -> None:
        """End the process that is kept for a session."""
        self._pool.retire(provider_session_id)

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether kimi-cli 1.50 is installed; its login is not checked."""
        command = KimiOptions.of(options).program
        missing = missing_program_reason(command, env, cwd, INSTALL)
        why = program_fault(command, env, cwd)
        if missing is None and why is not None:
            return Health(state="fail", detail=why)
        return missing or Health(detail="kimi-cli 1.50 is installed; its login is unknown")

    async def health(self) -> Health:
        """Report whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(KimiOptions(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240
