"""Gemini CLI without a terminal: what such runs can, and how they start.

A run has a `gemini` process of its own (`HeadlessRun`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from weakref import WeakValueDictionary

import trio

from sessionmgr.adapter import NATIVE, UNSUPPORTED, Capabilities, Health
from sessionmgr.adapter.kit import (
    ImageRefusedError,
    RunAdapter,
    config_failure,
    read_images,
    start_failure,
)
from sessionmgr.model import Failure, FailureKind
from sessionmgr.process import ProcessError
from sessionmgr_adapters.gemini.headless import launch
from sessionmgr_adapters.gemini.headless.driver import HeadlessRun
from sessionmgr_adapters.gemini.headless.start_gate import StartGate
from sessionmgr_adapters.gemini.login import gemini_health
from sessionmgr_adapters.gemini.options import GeminiOptions
from sessionmgr_adapters.gemini.permissions import HEADLESS_PERMISSIONS, denied_tool_fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import Options, RunContext, RunSpec


class GeminiHeadlessAdapter(RunAdapter[HeadlessRun]):
    """The adapter of runs with `options.headless`."""

    name = "gemini"
    display_name = "Gemini without a terminal"
    capabilities = Capabilities(
        streaming=NATIVE,
        tool_use=NATIVE,
        system_prompt=NATIVE,
        interrupt=NATIVE,
        resume=NATIVE,
        images_in=NATIVE,
        files=NATIVE,
        command_execution=NATIVE,
        web=NATIVE,
        plan_mode=NATIVE,
        usage=NATIVE,
        model_choice=NATIVE,
    )
    by_text: ClassVar = capabilities.narrowed(dict.fromkeys(("tool_use", "usage"), UNSUPPORTED))
    """The capabilities of a run with `options.output` "text"."""
    permissions = HEADLESS_PERMISSIONS
    options = GeminiOptions
    serves = frozenset({"directories", "tools_denied"})
    resume_command = "gemini --resume {id}"
    environment = launch.GEMINI_ENVIRONMENT
    admin_policies: ClassVar[Path] = launch.ADMIN_POLICIES
    """Directory of the machine's policies."""

    def __init__(self) -> None:
        super().__init__()
        self._busy: Final[set[str]] = set()
        """Sessions of Gemini that a run is using."""
        self._gates: Final[WeakValueDictionary[str, StartGate]] = WeakValueDictionary()
        """The gate of each directory in which processes start one after the other."""

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Return the capabilities of a run with these options."""
        return cls.by_text if GeminiOptions.of(options).output == "text" else cls.capabilities

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a run can never succeed, as `field: reason`; None if no reason is known."""
        fault = _option_fault(GeminiOptions.of(spec.options))
        if fault is not None:
            return fault
        size = len(spec.prompt.encode(errors="replace"))
        if size > launch.LONGEST_PROMPT:
            return f"prompt: it has {size} bytes, and Gemini reads {launch.LONGEST_PROMPT} at most"
        for each in spec.directories:
            if "," in each:
                return f"directories: Gemini takes the comma in {each!r} for the end of the path"
        return denied_tool_fault(spec.tools_denied)

    # --- runs ------------------------------------------------------------------------------------

    async def run(self, run: RunContext) -> None:
        """Run a prompt and report its events and its end."""
        await trio.lowlevel.checkpoint()
        session = run.provider_session_id or ""
        fault = _option_fault(GeminiOptions.of(run.options))
        failure = self._refusal(session) if fault is None else config_failure(fault)
        if failure is not None:
            await run.fail(failure)
            return
        self._busy.add(session)
        try:
            await self._run_headless(run, GeminiOptions.of(run.options))
        except ProcessError as error:
            await run.fail(start_failure(error))
        except ImageRefusedError as error:
            await run.fail(config_failure(str(error)))
        finally:
            self._busy.discard(session)

    async def _run_headless(self, run: RunContext, options: GeminiOptions) -> None:
        spec = launch.make_headless_spec(run, options)
        if spec.policy and any(self.admin_policies.glob("*.toml")):
            await run.fail(_ignored_policy_failure(run, self.admin_policies))
            return
        images = await read_images(run.images, run.cwd)
        gate = self._gates.setdefault(run.cwd, StartGate())
        driver = HeadlessRun(run, spec, options, images, gate)
        with self.active_runs(run, driver):
            await driver.execute()

    def _refusal(self, session: str) -> Failure | None:
        # Gemini does not lock its sessions: two runs would each lose the turn of the other.
        if session and session in {*self._busy, *(each.session for each in self._runs.values())}:
            message = f"another run uses the session {session}"
            return Failure(kind=FailureKind.SESSION_BUSY, message=message, phase="start")
        return None

    # --- health ----------------------------------------------------------------------------------

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Report whether Gemini is installed and logged in."""
        return gemini_health(GeminiOptions.of(options), env, cwd)

    async def health(self) -> Health:
        """Report whether a run without options could start."""
        await trio.lowlevel.checkpoint()
        return self.readiness(GeminiOptions(), os.environ, os.getcwd())  # noqa: PTH109, ASYNC240


def _option_fault(options: GeminiOptions) -> str | None:
    """Return which option works over ACP only, if one of these is given."""
    for name in ("auth", "mcp_servers"):
        if getattr(options, name):
            return f"options.{name}: it works over ACP only; leave out options.headless"
    return None


def _ignored_policy_failure(run: RunContext, policies: Path) -> Failure:
    """Return the failure for policies of the machine, which suppress the policy of the run."""
    message = (
        f"Gemini ignores the policy that keeps a run to permission_mode "
        f"{run.permission.asked.value} and tools_denied, because there are policies in {policies}; "
        "remove them, or use dangerously_skip_permissions without tools_denied"
    )
    return Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="start")
