"""What an adapter talks through: connections, and conversations on them.

This is the seam that an adapter's `sdk.py` fills and that a mock of it replaces. A connection is
one child tree, or one pool of HTTP connections; a conversation is one of the provider's sessions
on it, with one turn at a time. A provider's own connection says in `open` what it wants to know.

    async with sdk.connect(spec) as connection:
        conversation = await connection.open(spec)
        await conversation.send(message)
        async for frames in conversation.events():
            ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from sessionmgr.adapter.question import Decision
    from sessionmgr.process.command import Command
    from sessionmgr.process.launcher import Launcher

Told_contra = TypeVar("Told_contra", contravariant=True)
Frame_co = TypeVar("Frame_co", covariant=True)
Conversation_co = TypeVar("Conversation_co", covariant=True)
Opening_contra = TypeVar("Opening_contra", contravariant=True)
C = TypeVar("C", bound="Living")
Spec = TypeVar("Spec", bound="Keyed", contravariant=True)


class Keyed(Protocol):
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
    any_directory: bool = False
    """Whether its conversations may be about other directories than the one it was started in."""

    @property
    def key(self) -> Hashable:
        """Command, environment, account and, where it matters, directory."""
        command = self.command
        directory = "" if self.any_directory else command.cwd
        return (command.argv, frozenset(command.env.items()), self.account, directory)


class Living(Protocol):
    """What can come to an end by itself."""

    async def wait_closed(self) -> None:
        """Wait until it is of no more use: its child is gone, or talks no more."""
        ...


class Connection(Living, Protocol[Opening_contra, Conversation_co]):
    """A way to the provider."""

    async def open(self, spec: Opening_contra) -> Conversation_co:
        """Begin or take up one of the provider's sessions."""
        ...


class Conversation(Protocol[Told_contra, Frame_co]):
    """One session of the provider's."""

    async def send(self, message: Told_contra) -> None:
        """Say something: a prompt, or another message for the turn that is on."""
        ...

    async def interrupt(self) -> None:
        """Ask the provider to end the turn. Its events go on until it has."""
        ...

    async def answer(self, question: str, decision: Decision) -> None:
        """Answer a question of the provider's, by the name that it gave it."""
        ...

    def events(self) -> AsyncIterator[Sequence[Frame_co]]:
        """Iterate over what comes, a read at a time, until nothing more will."""
        ...


Connect: TypeAlias = Callable[[Spec], AbstractAsyncContextManager[C]]
"""Connects for the length of a block."""
