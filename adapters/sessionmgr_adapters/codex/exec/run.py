"""A run on a `codex exec` of its own: started, given its prompt, heard out, and seen to its end.

It is over when it has said so and has gone. One that has said so and stays is ended; one that goes
without a word has failed, whatever its exit code is. To cancel is SIGINT, at which Codex ends its
commands and keeps its thread fit to go on in; what does not obey is ended with all that is its.
"""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from msgspec import UNSET
from msgspec.structs import replace

from sessionmgr.adapter.kit.exit_failure import exit_failure, process_exited
from sessionmgr.adapter.kit.run_end import end_well, output_in
from sessionmgr.model import (
    Failure,
    FailureKind,
    Fidelity,
    MessageReceived,
)
from sessionmgr.process import PrivateFiles, Pump
from sessionmgr.process.ladder import Ladder, end_tree, open_tree
from sessionmgr_adapters.codex.exec.errors import cleaned, start_kind, turn_failure
from sessionmgr_adapters.codex.exec.frames import read
from sessionmgr_adapters.codex.exec.launch import ANSWER, PROFILE
from sessionmgr_adapters.codex.exec.normalise import State, normalise
from sessionmgr_adapters.codex.exec.profile import linked
from sessionmgr_adapters.codex.paths import placeless
from sessionmgr_adapters.codex.start_retry import has_lost, notice, wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Permission
    from sessionmgr.process import Command
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.process.launcher import ChildTree
    from sessionmgr.wire import Line
    from sessionmgr_adapters.codex.exec.launch import OneShotSpec
    from sessionmgr_adapters.codex.exec.spending import Meters

POLITE: Final = 2.0
TERM: Final = 1.0
LINGER: Final = 0.5
HURRIED: Final = Ladder(polite=0.0, term=0.2, linger=0.2)
"""For one that has had its time to obey, and has not."""
LAST_MOMENTS: Final = 3.0
"""Seconds from the end of what it says to its own."""
LARGEST_ANSWER: Final = 16 * 1024 * 1024
MESSAGE: Final = "answer"
COMPLETED: Final = "completed"


class OneShot:
    """One run, and the child that is its own."""

    def __init__(self, run: RunContext, spec: OneShotSpec, meters: Meters) -> None:
        self.ended: Final = trio.Event()
        """Set to have it end."""
        self._run: Final = run
        self._spec: Final = spec
        self._meters: Final = meters
        self._state: Final = State(_narrower(run.permission, spec), run.model)
        self._ladder: Final = Ladder(
            polite=min(POLITE, run.grace / 2),
            term=min(TERM, run.grace / 4),
            linger=min(LINGER, run.grace / 8),
        )
        self._is_said: Final = trio.Event()
        self._pump = Pump(self._take, room=run.room)

    @property
    def thread(self) -> str | None:
        """The thread that it is on, once that is known."""
        return self._state.thread

    async def play(self) -> None:
        """Have the prompt answered, and tell what happens.

        Raises:
            ProcessError: It could not be started.
        """
        with PrivateFiles() as files, ExitStack() as links:
            paths = {name: files.write(name, text) for name, text in self._spec.files.items()}
            named = {name: str(path) for name, path in paths.items()}
            for name, image in self._spec.links.items():
                link = files.directory / name
                link.symlink_to(image)
                named[name] = str(link)
            profile = None
            if PROFILE in paths:
                profile = links.enter_context(linked(self._spec.home, paths[PROFILE]))
            facts = await self._start(self._spec.command(named, profile))
            self._tell_of_the_answer(paths[ANSWER])
        self._book()
        self._run.emit_nowait(process_exited(facts))
        if self._run.cancelling is None:
            await self._end(facts)

    async def _start(self, command: Command) -> ExitFacts:
        """Start it, and again if it found its home half made; return how it ended."""
        tries = 1
        while True:
            facts = await self._perform(command)
            is_lost = self._state.thread is None and has_lost(self._pump.tail.text(), tries)
            if not is_lost or self._run.cancelling is not None:
                return facts
            self._run.emit_nowait(notice(tries))
            await wait(tries)
            tries += 1
            self._pump = Pump(self._take, room=self._run.room)

    async def _perform(self, command: Command) -> ExitFacts:
        async with (
            open_tree(self._spec.launcher, command, ladder=HURRIED) as tree,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._talk, tree)
            await self._wait_for_the_end(tree)
            facts = await end_tree(tree, self._ladder, _interrupt)
            with trio.move_on_after(LAST_MOMENTS):
                await self._pump.stdout_ended.wait()
            nursery.cancel_scope.cancel()
        return facts

    async def _talk(self, tree: ChildTree) -> None:
        self._pump.outbox.send(self._run.prompt.encode(errors="replace"))
        self._pump.outbox.close()
        await self._pump.run(
            stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
        )

    async def _wait_for_the_end(self, tree: ChildTree) -> None:
        """Wait until it has gone, or is to go, or has said its last and stays."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_until, self.ended, nursery.cancel_scope, 0)
            nursery.start_soon(_until, self._is_said, nursery.cancel_scope, LAST_MOMENTS)
            nursery.start_soon(_until, self._pump.stdout_ended, nursery.cancel_scope, LAST_MOMENTS)
            await tree.wait_exit()
            nursery.cancel_scope.cancel()

    def _take(self, lines: Sequence[Line]) -> None:
        events = [event for frame in read(lines) for event in normalise(frame, self._state)]
        if events:
            self._run.emit_nowait(*events)
        else:
            self._run.alive()
        if self._state.is_over:
            self._is_said.set()

    # --- what it comes to ------------------------------------------------------------------------

    def _tell_of_the_answer(self, file: Path) -> None:
        """Tell the answer that it has left, if that was not told: a frame of it may be lost."""
        if file.stat().st_size > LARGEST_ANSWER:
            return
        text = file.read_text(encoding="utf-8", errors="replace")
        if text.strip() and text.rstrip() != (self._state.answer or "").rstrip():
            self._state.answer = text
            self._run.emit_nowait(MessageReceived(content=text, message_id=MESSAGE))

    def _book(self) -> None:
        state = self._state
        if state.thread is None:
            return
        if self._spec.thread is None:
            self._meters.begin(state.thread)
        spent = None if state.counts is None else self._meters.book(state.thread, state.counts)
        if spent is not None:
            self._run.emit_nowait(spent)

    async def _end(self, facts: ExitFacts) -> None:
        run, state = self._run, self._state
        if state.failure is not None:
            await run.fail(state.failure, stop_reason="failed")
        elif not state.is_over:
            await run.fail(self._death(facts))
        else:
            output = UNSET if run.schema is None else output_in(state.answer or "")
            await end_well(run, output, stop_reason=COMPLETED)

    def _death(self, facts: ExitFacts) -> Failure:
        """Return the failure that it is to go without a last word."""
        state = self._state
        if state.complaint is not None:
            return turn_failure(state.complaint, before=state.retried)
        has_begun = state.thread is not None
        failure = exit_failure(facts, self._pump.tail, phase="turn" if has_begun else "start")
        said = self._pump.tail.text()
        kind = None if state.has_turn else start_kind(said)
        if kind is None:
            return placeless(replace(failure, retryable=True, resumable=has_begun))
        failure = replace(failure, kind=kind, message=cleaned(said) or failure.message)
        is_passing = kind is FailureKind.SESSION_BUSY
        return placeless(replace(failure, phase="start", retryable=is_passing))


def _narrower(asked: Permission, spec: OneShotSpec) -> Permission | None:
    """Return what is in force where something else would be asked about: nobody is asked here."""
    effective = f"never, {spec.sandbox}"
    if effective == asked.effective:
        return None
    return replace(asked, effective=effective, fidelity=Fidelity.NARROWER)


async def _interrupt(tree: ChildTree) -> None:
    await trio.lowlevel.checkpoint()
    tree.signal(signal.SIGINT)


async def _until(event: trio.Event, scope: trio.CancelScope, patience: float) -> None:
    await event.wait()
    await trio.sleep(patience)
    scope.cancel()
