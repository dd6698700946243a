"""The adapter: a prompt is a command, and its output the answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import (
    NATIVE,
    Capabilities,
    Mapped,
    PermissionMap,
    ProviderAdapter,
    RunContext,
    RunSpec,
)
from sessionmgr.adapter.kit.exit_failure import exit_failure, start_failure
from sessionmgr.adapter.kit.failures import config_invalid
from sessionmgr.errors import ProcessError, ProgramNotFound
from sessionmgr.model import (
    Failure,
    FailureKind,
    PermissionMode,
    RunStarted,
    ToolApprovalDenied,
    ToolApprovalRequested,
    ToolCallFailed,
    ToolCallStarted,
)
from sessionmgr.process import Command
from sessionmgr_adapters.shell.options import ShellOptions
from sessionmgr_adapters.shell.performance import TOOL, Performance
from sessionmgr_adapters.shell.rules import CommandRefusedError, Rules
from sessionmgr_adapters.shell.words import argv_of

if TYPE_CHECKING:
    from sessionmgr.model import Json

SHELL: Final = "/bin/sh"

PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: Mapped("allow-list", confined=False),
        PermissionMode.FULL_AUTO: Mapped("any-command", confined=False),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: Mapped("any-command", confined=False),
    }
)


class ShellAdapter(ProviderAdapter):
    """Runs commands of the system; `ShellOptions` says how."""

    name = "shell"
    display_name = "Shell command"
    capabilities = Capabilities(
        streaming=NATIVE, tool_use=NATIVE, interrupt=NATIVE, command_execution=NATIVE
    )
    permissions = PERMISSIONS
    options = ShellOptions
    runs_commands = True

    def __init__(self) -> None:
        super().__init__()
        self._playing: dict[str, Performance] = {}

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Say why a prompt is no command."""
        if "\0" in spec.prompt:
            return "prompt: it holds a NUL"
        try:
            is_shell = isinstance(spec.options, ShellOptions) and spec.options.shell
            return None if is_shell or argv_of(spec.prompt) else "prompt: it contains no command"
        except ValueError as error:
            return f"prompt: {error}"

    async def run(self, run: RunContext) -> None:
        """Run one command, to its end or to that of its time."""
        options = run.options
        assert isinstance(options, ShellOptions)
        tool_input: Json = {"command": run.prompt}
        performance = Performance(run, tool_input, options.success_exit_codes)
        directory = str(Path(run.cwd) / (options.cwd or ""))
        await run.emit(
            RunStarted(cwd=directory),
            ToolCallStarted(
                tool_call_id=performance.tool_call_id, tool_name=TOOL, tool_input=tool_input
            ),
        )
        self._playing[run.run_id] = performance
        try:
            command = _command(run, options, directory)
            await performance.play(command, options.limit)
        except CommandRefusedError as refusal:
            await _refuse(run, performance.tool_call_id, str(refusal))
        except (ProcessError, ValueError) as error:
            await _not_started(run, performance.tool_call_id, error)
        else:
            await _end(run, performance)
        finally:
            del self._playing[run.run_id]

    async def interrupt(self, run: RunContext) -> None:
        """Have the command end: TERM, then KILL; `run` goes on reading meanwhile."""
        performance = self._playing.get(run.run_id)
        if performance is not None:
            await performance.end()


def _command(run: RunContext, options: ShellOptions, directory: str) -> Command:
    """Make the command of a prompt, if it may be run.

    Raises:
        CommandRefusedError: It may not.
        ValueError: It is none.
    """
    allowed = options.allowed_commands
    if run.permission.asked is not PermissionMode.DEFAULT:
        allowed = None
    listed = allowed is not None or bool(options.denied_commands)
    rules = None
    if listed:
        path = run.env.get("PATH", os.defpath)
        rules = Rules(allowed, options.denied_commands, path=path, cwd=directory)
    if options.shell:
        script = rules.check_script(run.prompt) if rules else run.prompt
        argv = [SHELL, "-c", script]
    else:
        argv = argv_of(run.prompt)
        if not argv:
            raise ValueError("the prompt holds no command")
        if rules:
            argv = rules.check(argv)
    return Command(argv=tuple(argv), cwd=directory, env=dict(run.env), stdin=False)


async def _end(run: RunContext, performance: Performance) -> None:
    if run.cancelling is not None:
        return  # somebody else says how it ends
    facts = performance.facts
    assert facts is not None
    if performance.went_well:
        await run.finish(stop_reason="exit")
    else:
        await run.fail(exit_failure(facts, performance.tail), stop_reason="exit")


async def _refuse(run: RunContext, tool_call_id: str, why: str) -> None:
    """Tell that the command may not be run."""
    tool_input: Json = {"command": run.prompt}
    approval_id = f"{tool_call_id}.rule"
    await run.emit(
        ToolApprovalRequested(
            approval_id=approval_id,
            tool_call_id=tool_call_id,
            tool_name=TOOL,
            tool_input=tool_input,
            synthetic=True,
        ),
        ToolApprovalDenied(
            approval_id=approval_id,
            tool_call_id=tool_call_id,
            tool_name=TOOL,
            tool_input=tool_input,
            reason=why,
            by="options",
        ),
        ToolCallFailed(
            tool_call_id=tool_call_id, tool_name=TOOL, tool_input=tool_input, tool_output=why
        ),
    )
    await run.fail(Failure(kind=FailureKind.PERMISSION_REFUSED, message=why, phase="start"))


async def _not_started(run: RunContext, tool_call_id: str, error: Exception) -> None:
    """Tell that the command could not be started."""
    if isinstance(error, ProgramNotFound):
        # The prompt names the program: this provider's other jobs may find theirs.
        failure = config_invalid(str(error))
    elif isinstance(error, ProcessError):
        failure = start_failure(error)
    else:
        failure = config_invalid(str(error))
    await run.emit(
        ToolCallFailed(
            tool_call_id=tool_call_id,
            tool_name=TOOL,
            tool_input={"command": run.prompt},
            tool_output=failure.message,
        )
    )
    await run.fail(failure)
