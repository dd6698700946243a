"""Adapter of Amp: its capabilities, and the start and end of a run on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.adapter import NATIVE, Capabilities, Health, MappedMode, PermissionMap
from sessionmgr.adapter.kit import ConversationAdapter, connection_failure
from sessionmgr.model import PermissionMode
from sessionmgr_adapters.amp import sdk
from sessionmgr_adapters.amp.driver import AmpDriver
from sessionmgr_adapters.amp.failures import exit_failure_of
from sessionmgr_adapters.amp.launch import (
    AMP_ENVIRONMENT,
    AmpSpec,
    amp_health,
    make_amp_spec,
    start_failure_of,
    start_fault,
)
from sessionmgr_adapters.amp.options import AmpOptions
from sessionmgr_adapters.amp.sdk import AmpConnection, AmpConversation
from sessionmgr_adapters.amp.settings import BY_SETTINGS, BYPASS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import Options, RunContext, RunSpec
    from sessionmgr.model import Failure

# Amp asks no host for approval, so no answers of ours could emulate another mode.
PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: MappedMode(BY_SETTINGS, confined=False),
        PermissionMode.FULL_AUTO: MappedMode(BYPASS, confined=False),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: MappedMode(BYPASS, confined=False),
    }
)


class AmpAdapter(ConversationAdapter[AmpSpec, AmpConnection, AmpDriver]):
    """Adapter that executes runs on Amp; `AmpOptions` are its options."""

    name = "amp"
    display_name = "Amp"
    capabilities = Capabilities(
        reasoning=NATIVE,
        tool_use=NATIVE,
        interrupt=NATIVE,
        steer=NATIVE,
        resume=NATIVE,
        images_in=NATIVE,
        mcp=NATIVE,
        files=NATIVE,
        command_execution=NATIVE,
        web=NATIVE,
        usage=NATIVE,
    )
    permissions = PERMISSIONS
    options = AmpOptions
    serves = frozenset({"tools_allowed", "tools_denied"})
    resume_command = "amp threads continue {id}"
    environment = AMP_ENVIRONMENT
    connect = staticmethod(sdk.connect_amp)

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a run would be refused."""
        return start_fault(spec)

    async def run(self, run: RunContext) -> None:
        """Execute one run: send the prompt, and report events and the end."""
        failure = start_failure_of(run)
        if failure is None:
            await super().run(run)
        else:
            await run.fail(failure)

    def spec(self, run: RunContext) -> AmpSpec:
        """Return the spec of the run's process."""
        return make_amp_spec(run)

    def make_driver(self, run: RunContext) -> AmpDriver:
        """Return the driver of a run."""
        return AmpDriver(run)

    async def open(
        self, run: RunContext, connection: AmpConnection, driver: AmpDriver
    ) -> AmpConversation:
        """Open the run's conversation on its process."""
        driver.process = connection
        return await connection.open(make_amp_spec(run), driver)

    def is_fit(self, run: RunContext, driver: AmpDriver) -> bool:
        """Return False: the process has ended, or its input is closed."""
        return False

    async def finish(self, run: RunContext, driver: AmpDriver) -> None:
        """Report the end of the run by its result."""
        state = driver.state
        if state.failure is None:
            await run.finish(stop_reason=state.stop_reason)
        else:
            await run.fail(state.failure, stop_reason=state.stop_reason)

    def lost_failure(self, driver: AmpDriver, connection: AmpConnection) -> Failure:
        """Return the failure of a run whose process exited without a result."""
        phase = "turn" if driver.state.started else "start"
        return exit_failure_of(connection_failure(connection, phase=phase), connection.tail.text())

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether Amp is installed and has a key."""
        return amp_health(AmpOptions.of(options), env, cwd)

    async def health(self) -> Health:
        """Report whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(AmpOptions(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240
