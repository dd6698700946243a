"""The seam of an adapter: connections, conversations on them, and the drivers that they push into.

An adapter's `sdk.py` implements it, and a mock SDK replaces that. A connection is one child tree,
or one pool of HTTP connections. A conversation is one of the provider's sessions on it, with one
turn at a time. A driver is one run's side of a conversation.

    async with sdk.connect(spec) as connection:
        driver = EchoDriver(run)
        conversation = await connection.open(spec, driver)  # frames are pushed from now on
        await driver.play(conversation)                     # sends the prompt, waits for the end
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import msgspec

from sessionmgr.process import Command, Launcher

if TYPE_CHECKING:
    from sessionmgr.adapter.approval import Decision

Outgoing_contra = TypeVar("Outgoing_contra", contravariant=True)
Frame_co = TypeVar("Frame_co", covariant=True)
Frame_contra = TypeVar("Frame_contra", contravariant=True)
Conversation_co = TypeVar("Conversation_co", covariant=True)
Opening_contra = TypeVar("Opening_contra", contravariant=True)
C = TypeVar("C", bound="Closable")
Spec = TypeVar("Spec", bound="KeyedSpec", contravariant=True)


class KeyedSpec(Protocol):
    """What a connection is made from: two with equal keys are as good as each other."""

    @property
    def key(self) -> Hashable:
        """What must be equal."""
        ...


class ConnectionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A child to connect to."""

    launcher: Launcher
    command: Command
    account: str = ""
    """What else tells two connections apart, such as a login that is not in the environment."""
    any_directory: bool = False
    """Whether its conversations may be about other directories than the one it was started in:
    then one child serves runs in all of them, and is told the directory of each."""

    @property
    def key(self) -> Hashable:
        """Command, environment, account and, where it matters, directory."""
        command = self.command
        directory = "" if self.any_directory else command.cwd
        return (command.argv, frozenset(command.env.items()), self.account, directory)


class Driver(Protocol[Frame_contra]):
    """What a connection pushes frames into: one run's side of a conversation.

    `feed` and `end` run in the connection's reader, so they neither wait nor raise: a connection
    may serve other runs, too. `ConversationRun` of the kit implements all of it.
    """

    def feed(self, frames: Sequence[Frame_contra], size: int) -> None:
        """Take the frames of one read of `size` bytes; perhaps none, as a sign of life."""
        ...

    def crash(self, error: Exception) -> None:
        """End the run with an error that the connection met at its frames, and no other run."""
        ...

    def end(self) -> None:
        """Note that no more frames will come. It is called once."""
        ...

    async def room(self) -> None:
        """Wait until there is room for more. The reader awaits it between two reads."""
        ...


class Closable(Protocol):
    """What can come to an end by itself."""

    async def wait_closed(self) -> None:
        """Wait until it is of no more use: its child is gone, or talks no more."""
        ...


class Connection(Closable, Protocol[Opening_contra, Frame_co, Conversation_co]):
    """A way to the provider."""

    async def open(self, spec: Opening_contra, driver: Driver[Frame_co]) -> Conversation_co:
        """Open one of the provider's sessions, a new one or one that was.

        From now on its frames are pushed into the driver; those that are here already, at once. If
        the connection has ended, the driver is told so at once.
        """
        ...


class Conversation(Protocol[Outgoing_contra]):
    """One session of the provider's, as a driver uses it."""

    async def send(self, message: Outgoing_contra) -> None:
        """Send a message: a prompt, a request, an answer. What is sent first goes first."""
        ...

    async def interrupt(self) -> None:
        """Ask the provider to end the turn. Frames are pushed on until it has."""
        ...

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a question of the provider's, by the name that it gave it."""
        ...

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames: the run has left. It is called once, also after a crash or a cut.

        `keep` is what `keeps` of the driver says: the provider may keep the session loaded for the
        next run. Otherwise it is to be unloaded, where that can be said.
        """
        ...

    async def discard(self) -> None:
        """Kill the processes that the session's commands have left behind."""
        ...


Connect: TypeAlias = Callable[[Spec], AbstractAsyncContextManager[C]]
"""Connects for the length of a block."""
