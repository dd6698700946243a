"""A run on a Claude Code that prints plain text: the last resort, where it knows no frames.

It cannot ask, so what it would ask is denied; that is narrower than the mode says, and a mode that
needs our answers is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sessionmgr.adapter.kit.child_run import ChildRun
from sessionmgr.adapter.kit.run_end import config_invalid, exit_failure
from sessionmgr.adapter.kit.version import version_of
from sessionmgr.model import (
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    PermissionMode,
    RunStarted,
)
from sessionmgr.process import PrivateFiles
from sessionmgr.process.ladder import Ladder
from sessionmgr_adapters.claude.allowed import allowed_of
from sessionmgr_adapters.claude.claude_process import version_failure
from sessionmgr_adapters.claude.failures import complaint_kind
from sessionmgr_adapters.claude.fallback import OF_FRAMES
from sessionmgr_adapters.claude.outgoing import misreading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.wire import Line
    from sessionmgr_adapters.claude.launch import ClaudeSpec
    from sessionmgr_adapters.claude.options import ClaudeOptions

LADDER: Final = Ladder(polite=0.0, term=2.0)
MESSAGE: Final = "text"
EMPTY: Final = Failure(
    kind=FailureKind.PROVIDER_ERROR,
    message="Claude Code has printed nothing, and in plain text nobody knows why",
    resumable=True,
    provider_code="empty_reply",
    phase="turn",
)


class PlainRun(ChildRun):
    """One run, on a process of its own."""

    def __init__(self, run: RunContext, spec: ClaudeSpec, options: ClaudeOptions) -> None:
        super().__init__(run, ladder=LADDER, cut=LADDER)
        self._spec: Final = spec
        self._options: Final = options
        self._text = ""

    async def answer_prompt(self) -> None:
        """Have the prompt answered, and report what was printed.

        Raises:
            ProcessError: It could not be started.
        """
        run, spec = self.run, self._spec
        failure = _refused(run, self._options) or version_failure(
            await version_of(spec.launcher, self._options.command, spec.command)
        )
        if failure is not None:
            await run.fail(failure)
            return
        with PrivateFiles() as files:
            command = spec.full_command(files)
            plain = tuple(each for each in command.argv if each.partition("=")[0] not in OF_FRAMES)
            facts = await self.play(replace(command, argv=plain), run.prompt.encode())
        text = self._text.rstrip("\n")
        if text:
            run.emit_nowait(MessageReceived(content=text, message_id=MESSAGE))
        if run.cancelling is None:
            await self._end(facts, text)

    def started(self) -> None:
        """Report the start."""
        self.run.emit_nowait(RunStarted(provider_session_id=self._spec.session))

    def take(self, lines: Sequence[Line]) -> None:
        """Report what is printed, line by line."""
        heads = (line if isinstance(line, bytes) else line.head for line in lines)
        texts = [f"{head.decode(errors='replace')}\n" for head in heads]
        self._text += "".join(texts)
        pieces = [MessageStreamed(delta=each, message_id=MESSAGE) for each in texts]
        if pieces:
            self.run.emit_nowait(*pieces)
        else:
            self.run.alive()

    async def _end(self, facts: ExitFacts, text: str) -> None:
        if facts.exit_code == 0 and text:
            await self.run.finish(stop_reason="exit")
        elif facts.exit_code == 0:
            await self.run.fail(EMPTY)
        else:
            failure = exit_failure(facts, self.tail)
            kind = complaint_kind(self.tail.text()) or failure.kind
            await self.run.fail(replace(failure, kind=kind, resumable=True))


def _refused(run: RunContext, options: ClaudeOptions) -> Failure | None:
    """Return why a run cannot be had so: what there is nobody to ask about is not left out."""
    misread = misreading(run.prompt)
    allowed = allowed_of(run.tools_allowed, options)
    reasons = {
        "plain text leaves nobody to grant edits: accept_edits needs frames": run.permission.asked
        is PermissionMode.ACCEPT_EDITS,
        "plain text leaves nobody to see to it that nothing is changed: plan needs frames": (
            run.permission.asked is PermissionMode.PLAN
        ),
        "plain text has neither images nor structured output": bool(run.images)
        or run.schema is not None,
        f"in plain text a prompt is more than words: this one {misread}": not options.slash_commands
        and misread is not None,
        "in plain text nobody calls your functions": bool(options.tools or options.hooks),
        "in plain text nobody keeps to some tools of a server: tools_allowed needs frames": (
            allowed is not None and any(map(allowed.needs, options.mcp_servers))
        ),
        "in plain text nobody knows who pays: billing needs frames": options.billing is not None,
    }
    why = next((reason for reason, holds in reasons.items() if holds), None)
    return None if why is None else config_invalid(why)
