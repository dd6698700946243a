"""A run on a Claude Code that prints plain text: the last resort, where frames are not to be had.

There is nobody to ask, so what would be asked is denied; that is narrower than the mode says, and
a mode that lives from our answers is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter.kit.exit_failure import exit_failure, process_exited
from sessionmgr.model import (
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    PermissionMode,
    RunStarted,
)
from sessionmgr.process import PrivateFiles, Pump
from sessionmgr.process.ladder import Ladder, end_tree, open_tree
from sessionmgr_adapters.claude.allowed import allowed_of
from sessionmgr_adapters.claude.claude_process import version_failure
from sessionmgr_adapters.claude.failures import complaint_kind
from sessionmgr_adapters.claude.fallback import OF_FRAMES
from sessionmgr_adapters.claude.prompt_escaping import misreading
from sessionmgr_adapters.claude.version import version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.process import Tail
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.process.launcher import ChildTree
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


class PlainRun:
    """One run, and the child that is its own."""

    def __init__(self, run: RunContext, spec: ClaudeSpec, options: ClaudeOptions) -> None:
        self.ended: Final = trio.Event()
        """Set to have it end."""
        self._run: Final = run
        self._spec: Final = spec
        self._options: Final = options
        self._said: Final[list[str]] = []

    async def play(self) -> None:
        """Have the prompt answered, and tell what was printed.

        Raises:
            ProcessError: It could not be started.
        """
        run = self._run
        failure = _refused(run, self._options) or await self._version_failure()
        if failure is not None:
            await run.fail(failure)
            return
        pump = Pump(self._take, room=run.room)
        with PrivateFiles() as files:
            written = {flag: files.write(flag.strip("-"), text) for flag, text in self._spec.files}
            argv = self._spec.argv({flag: str(path) for flag, path in written.items()})
            plain = tuple(each for each in argv if each.partition("=")[0] not in OF_FRAMES)
            command = msgspec.structs.replace(self._spec.command, argv=plain)
            async with open_tree(self._spec.launcher, command, ladder=LADDER) as tree:
                await run.emit(RunStarted(provider_session_id=self._spec.session))
                pump.outbox.send(run.prompt.encode())
                pump.outbox.close()
                await self._talk(tree, pump)
                facts = await end_tree(tree, LADDER)
        run.emit_nowait(process_exited(facts))
        text = "".join(self._said).rstrip("\n")
        if text:
            run.emit_nowait(MessageReceived(content=text, message_id=MESSAGE))
        if run.cancelling is None:
            await self._end(facts, pump.tail, text)

    async def _version_failure(self) -> Failure | None:
        spec = self._spec
        return version_failure(await version_of(spec.launcher, self._options.command, spec.command))

    async def _talk(self, tree: ChildTree, pump: Pump) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_it_is_to_end, nursery.cancel_scope)
            await pump.run(
                stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
            )
            nursery.cancel_scope.cancel()

    async def _end(self, facts: ExitFacts, tail: Tail, text: str) -> None:
        if facts.exit_code == 0 and text:
            await self._run.finish(stop_reason="exit")
            return
        if facts.exit_code == 0:
            await self._run.fail(EMPTY)
            return
        failure = exit_failure(facts, tail)
        kind = complaint_kind(tail.text()) or failure.kind
        await self._run.fail(msgspec.structs.replace(failure, kind=kind, resumable=True))

    async def _until_it_is_to_end(self, scope: trio.CancelScope) -> None:
        await self.ended.wait()
        scope.cancel()

    def _take(self, lines: Sequence[Line]) -> None:
        for line in lines:
            text = (line if isinstance(line, bytes) else line.head).decode(errors="replace")
            self._said.append(f"{text}\n")
            self._run.emit_nowait(MessageStreamed(delta=f"{text}\n", message_id=MESSAGE))


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
    if why is None:
        return None
    return Failure(kind=FailureKind.CONFIG_INVALID, message=why, phase="start")
