"""Children for readable tests: they end on request, and record all events in one list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import Actor, Cast, ExitReason, Stop


class MemberCrashError(Exception):
    """The exception of a child that is asked to crash."""


class MemberCommand(Cast):
    """Do this."""

    deed: Callable[[], None]


class RecordingActor(Actor):
    """An actor that writes down when it starts and when it says farewell."""

    def __init__(self, troupe: RecordingChildren, name: str) -> None:
        self.troupe = troupe
        self.name = name

    async def init(self) -> None:
        await self.troupe.enter(self.name)

    async def handle_cast(self, message: Cast, /) -> None:
        assert isinstance(message, MemberCommand)
        message.deed()

    async def terminate(self, reason: ExitReason, /) -> None:
        self.troupe.log.append(f"stop {self.name}")
        await trio.sleep(self.troupe.farewells.get(self.name, 0))


class RecordingChildren:
    """The children of one test."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.born: dict[str, int] = {}
        self.failing: dict[str, set[int]] = {}
        """Which starts fail, counted from 1."""
        self.farewells: dict[str, float] = {}
        """How long a farewell takes."""
        self.inits: dict[str, float] = {}
        """How long a start takes."""
        self._words: dict[str, trio.Event] = {}
        self._deeds: dict[str, Callable[[], None]] = {}

    async def enter(self, name: str) -> None:
        """Start, or fail to."""
        self.born[name] = self.born.get(name, 0) + 1
        self.log.append(f"start {name}")
        await trio.sleep(self.inits.get(name, 0))
        if self.born[name] in self.failing.get(name, ()):
            raise MemberCrashError(f"{name} does not start")

    async def play(
        self, name: str, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Be a function that waits for its word."""
        await self.enter(name)
        word = self._words[name] = trio.Event()
        task_status.started(f"{name} is up")
        try:
            await word.wait()
            self._deeds[name]()
        finally:
            self.log.append(f"stop {name}")
            with trio.CancelScope(shield=True):
                await trio.sleep(self.farewells.get(name, 0))

    def tell(self, *names: str, deed: Callable[[], None]) -> None:
        """Let functions do something, all in this moment."""
        for name in names:
            self._deeds[name] = deed
            self._words[name].set()

    async def crash(self, *names: str) -> None:
        """Let functions crash, all in this moment, and wait for what comes of it."""
        self.tell(*names, deed=crash)
        await wait_all_tasks_blocked()

    async def finish(self, *names: str) -> None:
        """Let functions return."""
        self.tell(*names, deed=finish)
        await wait_all_tasks_blocked()

    def take_log(self) -> list[str]:
        """Give what happened since the last time."""
        log, self.log = self.log, []
        return log


def crash() -> None:
    """End badly."""
    raise MemberCrashError


def finish() -> None:
    """End well."""


def stop_with(reason: ExitReason) -> Callable[[], None]:
    """Give a deed: to end for this reason."""

    def deed() -> None:
        raise Stop(reason)

    return deed


async def fine() -> None:
    """Be a child that does nothing, for ever."""
    await trio.sleep_forever()


async def within(seconds: float, what: Callable[[], Awaitable[object]]) -> None:
    """Call `what` after some time."""
    await trio.sleep(seconds)
    await what()
