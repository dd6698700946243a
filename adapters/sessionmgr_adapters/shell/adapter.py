"""Adapter that executes a prompt as a command; its output is the answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import (
    NATIVE,
    Capabilities,
    MappedMode,
    PermissionMap,
    RunContext,
    RunSpec,
)
from sessionmgr.adapter.kit import (
    RunAdapter,
    config_failure,
    exit_failure,
    plain_argv,
    start_failure,
)
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
from sessionmgr.process import Command, ProcessError, ProgramNotFound
from sessionmgr_adapters.shell.command_rules import CommandRefusedError, CommandRules
from sessionmgr_adapters.shell.driver import TOOL, ShellRun
from sessionmgr_adapters.shell.options import ShellOptions

if TYPE_CHECKING:
    from sessionmgr.process import ExitReport

SHELL: Final = "/bin/sh"

PERMISSIONS: Final = PermissionMap(
    {
        PermissionMode.DEFAULT: MappedMode("allow-list", confined=False),
        PermissionMode.FULL_AUTO: MappedMode("any-command", confined=False),
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS: MappedMode("any-command", confined=False),
    }
)


class ShellAdapter(RunAdapter[ShellRun]):
    """Adapter that executes commands of the system; `ShellOptions` are its options."""

    name = "shell"
    display_name = "Shell command"
    capabilities = Capabilities(
        streaming=NATIVE, tool_use=NATIVE, interrupt=NATIVE, command_execution=NATIVE
    )
    permissions = PERMISSIONS
    options = ShellOptions
    runs_commands = True

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Return why a prompt is not a command."""
        if "\0" in spec.prompt:
            return "prompt: contains a NUL character; remove it"
        try:
            is_shell = isinstance(spec.options, ShellOptions) and spec.options.shell
            return None if is_shell or plain_argv(spec.prompt) else "prompt: it contains no command"
        except ValueError as error:
            return f"prompt: {error}"

    async def run(self, run: RunContext) -> None:
        """Run one command until it exits or times out."""
        options = ShellOptions.of(run.options)
        directory = str(Path(run.cwd) / (options.cwd or ""))
        command = ShellRun(run, options.success_exit_codes)
        started = ToolCallStarted(
            tool_call_id=command.tool_call_id, tool_name=TOOL, tool_input=command.tool_input
        )
        await run.emit(RunStarted(cwd=directory), started)
        try:
            with self.active_runs(run, command):
                facts = await command.run_command(_command(run, options, directory), options.limit)
        except CommandRefusedError as refusal:
            await _refuse(run, command, str(refusal))
        except (ProcessError, ValueError) as error:
            await _not_started(run, command, error)
        else:
            # The component that stopped a run ends it.
            if facts is not None and run.cancelling is None:
                await _finish_run(run, command, facts)


def _command(run: RunContext, options: ShellOptions, directory: str) -> Command:
    """Return the command of a prompt, checked by the lists of the options.

    Raises:
        CommandRefusedError: The lists do not allow it.
        ValueError: The prompt is not a command.
    """
    allowed = options.allowed_commands
    if run.permission.asked is not PermissionMode.DEFAULT:
        allowed = None
    listed = allowed is not None or bool(options.denied_commands)
    rules = None
    if listed:
        path = run.env.get("PATH", os.defpath)
        rules = CommandRules(allowed, options.denied_commands, path=path, cwd=directory)
    if options.shell:
        script = rules.check_script(run.prompt) if rules else run.prompt
        argv = [SHELL, "-c", script]
    else:
        argv = plain_argv(run.prompt)
        if not argv:
            raise ValueError("the prompt contains no command")
        if rules:
            argv = rules.check_argv(argv)
    return Command(argv=tuple(argv), cwd=directory, env=dict(run.env), stdin=False)


async def _finish_run(run: RunContext, command: ShellRun, facts: ExitReport) -> None:
    if command.succeeded(facts):
        await run.finish(stop_reason="exit")
    else:
        await run.fail(exit_failure(facts, command.tail), stop_reason="exit")


async def _refuse(run: RunContext, command: ShellRun, why: str) -> None:
    """Fail a run whose command the lists do not allow."""
    approval_id = f"{command.tool_call_id}.rule"
    await run.emit(
        ToolApprovalRequested(
            approval_id=approval_id,
            tool_call_id=command.tool_call_id,
            tool_name=TOOL,
            tool_input=command.tool_input,
            synthetic=True,
        ),
        ToolApprovalDenied(
            approval_id=approval_id,
            tool_call_id=command.tool_call_id,
            tool_name=TOOL,
            tool_input=command.tool_input,
            reason=why,
            by="options",
        ),
        command.tool_ended(ToolCallFailed, why),
    )
    await run.fail(Failure(kind=FailureKind.PERMISSION_REFUSED, message=why, phase="start"))


async def _not_started(run: RunContext, command: ShellRun, error: Exception) -> None:
    """Fail a run whose command could not be started."""
    if isinstance(error, ProcessError) and not isinstance(error, ProgramNotFound):
        failure = start_failure(error)
    else:  # the prompt names the program: other prompts may name one that exists
        failure = config_failure(str(error))
    await run.emit(command.tool_ended(ToolCallFailed, failure.message))
    await run.fail(failure)
