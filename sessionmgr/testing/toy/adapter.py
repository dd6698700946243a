"""The adapter: what the toy agent can do, and how a run is played on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import trio

from sessionmgr.adapter import (
    NATIVE,
    ApprovalRequest,
    Capabilities,
    Mapped,
    PermissionMap,
    ProviderAdapter,
    RunContext,
)
from sessionmgr.adapter.connections import ConnectionSpec
from sessionmgr.adapter.kit.connection_pool import ConnectionPool
from sessionmgr.adapter.kit.exit_failure import exit_failure, process_exited, start_failure
from sessionmgr.errors import ProcessError
from sessionmgr.model import Cause, Failure, FailureKind, PermissionMode
from sessionmgr.process import Command
from sessionmgr.testing.toy import sdk
from sessionmgr.testing.toy.frames import More, Open, Question, Say, Took, TurnEnded, Withdrawn
from sessionmgr.testing.toy.normalise import State, normalise
from sessionmgr.testing.toy.options import ToyOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.connections import Connect
    from sessionmgr.testing.toy.frames import Frame
    from sessionmgr.testing.toy.sdk import ToyConnection, ToyConversation
    from sessionmgr.wire import NoFrame

    Pool: TypeAlias = ConnectionPool[ConnectionSpec, ToyConnection]

PROGRAM: Final = str(Path(__file__).with_name("program.py"))

# The agent asks about everything, so every mode is what is answered, and it confines nothing.
PERMISSIONS: Final = PermissionMap(
    {mode: Mapped("asks", confined=False) for mode in PermissionMode}
)


def agent() -> tuple[str, ...]:
    """Return the argv of the agent that comes with this adapter."""
    return (sys.executable, "-I", "-S", PROGRAM)


class ToyAdapter(ProviderAdapter):
    """Plays runs on the toy agent."""

    name = "toy"
    capabilities = Capabilities(
        streaming=NATIVE,
        tool_use=NATIVE,
        tool_approval=NATIVE,
        interrupt=NATIVE,
        steer=NATIVE,
        resume=NATIVE,
        usage=NATIVE,
    )
    permissions = PERMISSIONS
    options = ToyOptions
    connect: ClassVar[Connect[ConnectionSpec, ToyConnection]] = staticmethod(sdk.connect)
    """The seam: a mock SDK is put here."""

    def __init__(self) -> None:
        super().__init__()
        self._pool: Pool = ConnectionPool(type(self).connect)
        self._turns: dict[str, Turn] = {}

    async def run(self, run: RunContext) -> None:
        """Play one run: one turn of the agent's."""
        spec = ConnectionSpec(launcher=run.launcher, command=_command(run))
        try:
            async with self._pool.lease(spec, run.connections) as lease:
                conversation = await lease.connection.open(Open(run.provider_session_id))
                turn = self._turns[run.run_id] = Turn(run, conversation)
                try:
                    await turn.play()
                finally:
                    del self._turns[run.run_id]
                # What it still has to say about a turn that did not end must not reach the next.
                if not _options(run).keep or _was_silent(run) or turn.ended is None:
                    lease.abandon()
                await _end(run, turn, lease.connection)
        except ProcessError as error:
            await run.fail(start_failure(error))

    async def interrupt(self, run: RunContext) -> None:
        """Ask the agent to end its turn; `run` reads on until it has."""
        turn = self._turns.get(run.run_id)
        if turn is not None:
            await turn.conversation.interrupt()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Give another message to the turn, and wait to hear whether it was taken."""
        turn = self._turns.get(run.run_id)
        return turn is not None and await turn.add(content, message_id)


class Turn:
    """A turn on its way. It is read by one task, and asked for things by others."""

    def __init__(self, run: RunContext, conversation: ToyConversation) -> None:
        self.conversation: Final = conversation
        self.ended: TurnEnded | None = None
        """How it ended; None if the agent went before it did."""
        self._run: Final = run
        self._is_asked = False
        """Whether the agent has the prompt: before that, no other message is to reach it."""
        self._state: Final = State()
        self._questions: Final[dict[str, trio.CancelScope]] = {}
        self._offers: Final[dict[str, Offer]] = {}

    async def play(self) -> None:
        """Have the prompt answered, and tell what happens, to the end of the turn."""
        if self._run.cancelling is not None:
            return  # nobody is to be asked any more
        await self.conversation.send(Say(self._run.prompt))
        self._is_asked = True
        try:
            async with trio.open_nursery() as nursery:
                async for frames in self.conversation.events():
                    self._take(frames, nursery)
                    if self.ended is not None:
                        break
                    await self._run.room()
                nursery.cancel_scope.cancel()  # who still asks is not waited for
        finally:
            for offer in self._offers.values():
                offer.settle(taken=False)

    def _take(self, frames: Sequence[Frame | NoFrame], nursery: trio.Nursery) -> None:
        for frame in frames:
            events = normalise(frame, self._state)
            if events:
                self._run.emit_nowait(*events)
            match frame:
                case Question():
                    nursery.start_soon(self._ask, frame)
                case Withdrawn(id=id_) if id_ in self._questions:
                    self._questions[id_].cancel()
                case Took(id=id_, taken=taken) if id_ in self._offers:
                    self._offers[id_].settle(taken=taken)
                case TurnEnded():
                    self.ended = frame
                case _:
                    self._run.alive()

    async def _ask(self, question: Question) -> None:
        """Ask about a question, beside the reading: it may be withdrawn, and others may come."""
        with trio.CancelScope() as scope:
            self._questions[question.id] = scope
            decision = await self._run.ask(
                ApprovalRequest(
                    tool_name=question.name,
                    tool_input=question.input,
                    tool_call_id=question.id,
                    effect=question.effect,
                )
            )
            await self.conversation.answer(question.id, decision)
        del self._questions[question.id]

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message, and say whether it was taken."""
        if self.ended is not None or not self._is_asked:
            return False
        offer = self._offers[message_id] = Offer()
        await self.conversation.send(More(message_id, content))
        await offer.settled.wait()
        return offer.taken


class Offer:
    """A message of which it is not known yet whether the turn takes it."""

    def __init__(self) -> None:
        self.settled: Final = trio.Event()
        self.taken = False

    def settle(self, *, taken: bool) -> None:
        """Note what became of it."""
        if not self.settled.is_set():
            self.taken = taken
            self.settled.set()


async def _end(run: RunContext, turn: Turn, connection: ToyConnection) -> None:
    """Tell how the run ended, if that is the agent's to say."""
    if turn.ended is None:
        facts = connection.facts
        if facts is not None:
            run.emit_nowait(process_exited(facts))
        if run.cancelling is None:
            await run.fail(_broken_off(connection))
    elif run.cancelling is not None:
        await trio.lowlevel.checkpoint()  # it obeyed; whoever stopped the run says how it ends
    elif turn.ended.error is not None:
        await run.fail(
            Failure(kind=FailureKind.PROVIDER_ERROR, message=turn.ended.error, phase="turn"),
            stop_reason=turn.ended.reason,
        )
    else:
        await run.finish(stop_reason=turn.ended.reason)


def _broken_off(connection: ToyConnection) -> Failure:
    """Say what it means that the agent went in the middle of a turn; exit code 0 is no success."""
    if connection.facts is None:
        message = "the connection ended in the middle of a turn"
        return Failure(kind=FailureKind.PROTOCOL_ERROR, message=message, phase="turn")
    return exit_failure(connection.facts, connection.tail)


def _options(run: RunContext) -> ToyOptions:
    assert isinstance(run.options, ToyOptions)
    return run.options


def _was_silent(run: RunContext) -> bool:
    """Whether the run is ended because the agent was silent: such an agent is not used again."""
    return run.cancelling is not None and run.cancelling.cause is Cause.SILENCE


def _command(run: RunContext) -> Command:
    given = _options(run).command
    return Command(argv=given or agent(), cwd=run.cwd, env=dict(run.env))
