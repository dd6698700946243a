"""A child that is talked with in lines, from its start to the proof that nothing of it is left.

It ends as it likes to be ended: it is told so in its own language, its input is closed, and after
that come the steps of the ladder. Whoever owns it may be cancelled; the end is seen through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.errors import InputFull
from sessionmgr.process import Pump
from sessionmgr.process.ladder import Ladder, end_tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.process import Tail
    from sessionmgr.process.facts import ExitFacts
    from sessionmgr.process.launcher import ChildTree
    from sessionmgr.wire import Line

POLITE: Final = 3.0
"""Seconds to end once it is told to."""
LADDER: Final = Ladder(polite=POLITE, term=2.0)
HURRIED: Final = Ladder(polite=0.0, term=0.2, linger=0.2)
"""For one that has had its time to obey, and has not."""
LAST_MOMENTS: Final = 1.0
"""Seconds from the end of its output to its own."""


class ChildTalk:
    """One child. `take` gets its lines, a read at a time; `over` is called when it is gone."""

    def __init__(
        self,
        take: Callable[[Sequence[Line]], None],
        *,
        room: Callable[[], Awaitable[None]],
        over: Callable[[], None],
    ) -> None:
        self.facts: ExitFacts | None = None
        """How it ended, when it has."""
        self.hurried = False
        """Whether it has had its time to end already."""
        self._over: Final = over
        self._closed: Final = trio.Event()
        self._ended: Final = trio.Event()
        self._parting: Final = trio.Event()
        self._pump: Final = Pump(take, room=room)

    @property
    def tail(self) -> Tail:
        """The last of what it complained."""
        return self._pump.tail

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._ended.is_set()

    async def run(self, tree: ChildTree) -> None:
        """Talk with it until it is gone, whoever is cancelled."""
        with trio.CancelScope(shield=True):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._serve, tree)
                    await self._wait_for_the_end(tree)
                    self._closed.set()
                    ladder = HURRIED if self.hurried else LADDER
                    self.facts = await end_tree(tree, ladder)
                    with trio.move_on_after(LAST_MOMENTS):
                        await self._pump.stdout_ended.wait()
                    nursery.cancel_scope.cancel()
            finally:
                self._closed.set()
                self._ended.set()
                self._over()
                await tree.aclose()

    async def _wait_for_the_end(self, tree: ChildTree) -> None:
        """Wait until it has gone, or says nothing any more, or has had its time to go."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_silent, nursery.cancel_scope, tree)
            await self._parting.wait()
            with trio.move_on_after(0.0 if self.hurried else POLITE):
                await tree.wait_exit()
            nursery.cancel_scope.cancel()

    async def _until_silent(self, scope: trio.CancelScope, tree: ChildTree) -> None:
        await self._pump.stdout_ended.wait()
        # Who says nothing any more is about to end. If not, it is of no use.
        with trio.move_on_after(LAST_MOMENTS):
            await tree.wait_exit()
        scope.cancel()

    async def _serve(self, tree: ChildTree) -> None:
        await self._pump.run(
            stdin=tree.stdin, stdout=tree.stdout, stderr=tree.stderr, exited=tree.wait_exit
        )

    def write(self, line: bytes) -> bool:
        """Have a line written; False if there is no room. That it has gone is told by `over`."""
        try:
            return self._pump.outbox.send(line)
        except InputFull:  # it does not read: what is told of its silence tells of that
            return False

    async def part(self) -> None:
        """Have it end: nothing more is said to it. Wait until nothing of it is left."""
        await trio.lowlevel.checkpoint()
        self._pump.outbox.close()
        self._parting.set()
        await self._ended.wait()

    def close(self) -> None:
        """Say that it is of no use any more."""
        self._closed.set()

    async def wait_closed(self) -> None:
        """Wait until it is of no use any more."""
        await self._closed.wait()
