"""Fallbacks after a failed start: another process and, as the last resort, plain text.

A kept process that hangs or dies before it has accepted its prompt is replaced by a process of the
run's own. One that does not speak stream-json is replaced by one that prints plain text. If the
prompt may have been accepted, nothing is tried again: that could repeat work, and the caller
decides about it.

In plain text Claude Code cannot ask, so every request is denied. This is narrower than the mode,
and a mode that needs our answers is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.adapter.kit import ChildRun, config_failure, exit_failure, read_version
from sessionmgr.model import (
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    PermissionMode,
    RunStarted,
)
from sessionmgr.process import Escalation, PrivateFiles
from sessionmgr_adapters.claude.claude_process import version_failure
from sessionmgr_adapters.claude.failures import stderr_failure_kind
from sessionmgr_adapters.claude.launch_strategy import StartFailure
from sessionmgr_adapters.claude.outgoing import special_meaning
from sessionmgr_adapters.claude.phase import ClaudePhase
from sessionmgr_adapters.claude.tool_access import tool_access_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.process import ExitReport
    from sessionmgr.wire import Line
    from sessionmgr_adapters.claude.driver import ClaudeDriver
    from sessionmgr_adapters.claude.launch import ClaudeSpec
    from sessionmgr_adapters.claude.options import ClaudeOptions

FIRST_FRAME_TIMEOUT: Final = 25.0
"""Seconds to wait for the first frame of a kept process: less than the start timeout."""

STREAMING_OPTIONS: Final = (
    *("--output-format", "--input-format", "--replay-user-messages", "--include-partial-messages"),
    *("--permission-prompt-tool", "--verbose"),
)
"""Flags that have a meaning only with stream-json."""
_KNOWS_NO_FRAMES: Final = re.compile(f"(unknown option|invalid).*({'|'.join(STREAMING_OPTIONS)})|"
                                     f"({'|'.join(STREAMING_OPTIONS)}).*invalid")  # fmt: skip


def start_failure_of(driver: ClaudeDriver, *, was_used: bool) -> StartFailure | None:
    """Return how a start failed; None if the agent has answered, or reports the error itself."""
    if driver.failure is not None or driver.state.failure is not None or driver.has_answered:
        return None
    is_noise_alone = driver.reads > 0 and not driver.has_output
    if driver.phase is ClaudePhase.SILENT:
        return StartFailure.KNOWS_NO_FRAMES if is_noise_alone else StartFailure.HUNG
    if driver.phase is not ClaudePhase.LOST:
        return None
    if was_used:
        return StartFailure.WAS_DEAD
    connection = driver.process.connection
    complaint = "" if connection.facts is None else connection.tail.text()
    if is_noise_alone or _KNOWS_NO_FRAMES.search(complaint):
        return StartFailure.KNOWS_NO_FRAMES
    return None if stderr_failure_kind(complaint) else StartFailure.DIED


# --- plain text ----------------------------------------------------------------------------------

LADDER: Final = Escalation(polite=0.0, term=2.0)
MESSAGE: Final = "text"
EMPTY: Final = Failure(
    kind=FailureKind.PROVIDER_ERROR,
    message="Claude Code printed nothing; its plain-text mode gives no reason",
    resumable=True,
    provider_code="empty_reply",
    phase="turn",
)


class PlainRun(ChildRun):
    """Run in plain text, on a process of its own."""

    def __init__(self, run: RunContext, spec: ClaudeSpec, options: ClaudeOptions) -> None:
        super().__init__(run, ladder=LADDER, cut=LADDER)
        self._spec: Final = spec
        self._options: Final = options
        self._text = ""

    async def answer_prompt(self) -> None:
        """Send the prompt, and report the text that is printed.

        Raises:
            ProcessError: The process could not be started.
        """
        run, spec = self.run, self._spec
        failure = _plain_refusal(run, self._options) or version_failure(
            await read_version(spec.launcher, self._options.command, spec.command)
        )
        if failure is not None:
            await run.fail(failure)
            return
        with PrivateFiles() as files:
            command = spec.full_command(files)
            plain = tuple(
                each for each in command.argv if each.partition("=")[0] not in STREAMING_OPTIONS
            )
            facts = await self.run_child(replace(command, argv=plain), run.prompt.encode())
        text = self._text.rstrip("\n")
        if text:
            run.emit_nowait(MessageReceived(content=text, message_id=MESSAGE))
        if run.cancelling is None:
            await self._finish(facts, text)

    def on_started(self) -> None:
        """Report the start."""
        self.run.emit_nowait(RunStarted(provider_session_id=self._spec.session))

    def handle_lines(self, lines: Sequence[Line]) -> None:
        """Report the output, line by line."""
        heads = (line if isinstance(line, bytes) else line.head for line in lines)
        texts = [f"{head.decode(errors='replace')}\n" for head in heads]
        self._text += "".join(texts)
        pieces = [MessageStreamed(delta=each, message_id=MESSAGE) for each in texts]
        if pieces:
            self.run.emit_nowait(*pieces)
        else:
            self.run.alive()

    async def _finish(self, facts: ExitReport, text: str) -> None:
        if facts.exit_code == 0 and text:
            await self.run.finish(stop_reason="exit")
        elif facts.exit_code == 0:
            await self.run.fail(EMPTY)
        else:
            failure = exit_failure(facts, self.tail)
            kind = stderr_failure_kind(self.tail.text()) or failure.kind
            await self.run.fail(replace(failure, kind=kind, resumable=True))


def _plain_refusal(run: RunContext, options: ClaudeOptions) -> Failure | None:
    """Return why a run cannot use plain text: a requirement that it cannot meet."""
    misread = None if options.slash_commands else special_meaning(run.prompt)
    allowed = tool_access_of(run.tools_allowed, options)
    is_selective = allowed is not None and any(map(allowed.needs, options.mcp_servers))
    requirements = {
        "permission_mode accept_edits": run.permission.asked is PermissionMode.ACCEPT_EDITS,
        "permission_mode plan": run.permission.asked is PermissionMode.PLAN,
        "images": bool(run.images),
        "schema": run.schema is not None,
        f"a literal prompt (this one {misread})": misread is not None,
        "options.tools": bool(options.tools),
        "options.hooks": bool(options.hooks),
        "tools_allowed with tools of options.mcp_servers": is_selective,
        "options.billing": options.billing is not None,
    }
    for requirement, holds in requirements.items():
        if holds:
            return config_failure(f"{requirement}: not available in plain-text mode")
    return None
