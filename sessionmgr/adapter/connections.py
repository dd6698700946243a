"""Protocols between an adapter and its SDK: connections, conversations on them, and drivers.

An adapter's `sdk.py` implements them, and a mock SDK replaces it. A connection is one child process
tree, or one pool of HTTP connections. A conversation is one of the provider's sessions on it, with
one turn at a time. A driver handles the frames of one run.

    async with sdk.connect(spec) as connection:
        driver = EchoDriver(run)
        conversation = await connection.open(spec, driver)  # frames are pushed from now on
        await driver.run_conversation(conversation)         # sends the prompt, waits for the end
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
    """Specification of a connection; connections with equal keys are interchangeable."""

    @property
    def key(self) -> Hashable:
        """The value that is equal for interchangeable connections."""
        ...


class ConnectionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Specification of a connection to a child process."""

    launcher: Launcher
    command: Command
    account: str = ""
    """A further part of the key, such as a login that is not in the environment."""
    any_directory: bool = False
    """Whether its conversations may work in directories other than its start directory: then one
    child serves runs in all of them, and receives the directory of each.
    """

    @property
    def key(self) -> Hashable:
        """Command, environment, account and, where it matters, directory."""
        command = self.command
        directory = "" if self.any_directory else command.cwd
        return (command.argv, frozenset(command.env.items()), self.account, directory)


class Driver(Protocol[Frame_contra]):
    """Receiver of a connection's frames: one run's side of a conversation.

    `feed` and `end` run in the connection's reader, so they neither wait nor raise: a connection
    may serve other runs, too. `ConversationRun` of the kit implements all of it.
    """

    def feed(self, frames: Sequence[Frame_contra], size: int) -> None:
        """Handle the frames of one read of `size` bytes; an empty read is a sign of life."""
        ...

    def crash(self, error: Exception) -> None:
        """Fail the run, and no other, with an error that the connection raised for its frames."""
        ...

    def end(self) -> None:
        """Handle the end of the frames. It is called once."""
        ...

    async def room(self) -> None:
        """Wait until there is room for more events. The reader awaits it between two reads."""
        ...


class Closable(Protocol):
    """Resource that can end by itself."""

    async def wait_closed(self) -> None:
        """Wait until it is unusable: its child has exited, or has stopped talking."""
        ...


class Connection(Closable, Protocol[Opening_contra, Frame_co, Conversation_co]):
    """Connection to the provider."""

    async def open(self, spec: Opening_contra, driver: Driver[Frame_co]) -> Conversation_co:
        """Open one of the provider's sessions, a new one or an existing one.

        From now on its frames are pushed into the driver; frames that are here already, at once. If
        the connection has ended, the driver's `end` is called at once.
        """
        ...


class Conversation(Protocol[Outgoing_contra]):
    """One session of the provider, as a driver uses it."""

    async def send(self, message: Outgoing_contra) -> None:
        """Send a message: a prompt, a request, an answer. Messages keep the order of the calls."""
        ...

    async def interrupt(self) -> None:
        """Ask the provider to end the turn. Its frames are pushed until the turn has ended."""
        ...

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a request of the provider, by the name that the provider gave it."""
        ...

    def close(self, *, keep: bool = False) -> None:
        """Push no more frames: the run has left. It is called once, also after a crash or a cancel.

        `keep` is the result of the driver's `keeps_session`: the provider may keep the session
        loaded for the next run. Otherwise the connection unloads it, if its protocol can.
        """
        ...

    async def discard(self) -> None:
        """Kill the processes that the session's commands have left behind."""
        ...


Connect: TypeAlias = Callable[[Spec], AbstractAsyncContextManager[C]]
"""Opens a connection for the length of a block."""
