"""Trace of one run of a scenario, and the laws that hold in every run.

Scenarios are made of the players here: an actor and a function that note what is done to
them, without a look at how supervisors work.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Self, TypeVar, TypeVarTuple

import trio

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    Call,
    Caller,
    Cast,
    Down,
    Exit,
    ExitReason,
    OtpError,
    Ref,
)
from tests.otp.fault_injection import InjectedCrashError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

log = logging.getLogger("sessionmgr.otp")


class EchoCall(Call[int]):
    """The answer is `n`, after `wait` seconds; or, with `later`, when a `Release` comes."""

    n: int
    wait: float = 0.0
    later: bool = False


class CrashCast(Cast):
    """Crash."""


class ReleaseCast(Cast):
    """Answer what was put off."""


class ScenarioCrashError(Exception):
    """The crash that a scenario wants."""


class TracedRequest:
    """A call, or an order to a supervisor, and how often it came to an end."""

    def __init__(self, what: object) -> None:
        self.what = what
        self.ends: list[str] = []

    def __repr__(self) -> str:
        return f"{self.what!r}: {', '.join(self.ends) or 'no end'}"


class ScenarioTrace:
    """The notes of one run."""

    def __init__(self) -> None:
        self.refs: dict[str, list[Ref[Actor]]] = {}
        self.bodies: Counter[str] = Counter()
        self.asked: list[TracedRequest] = []
        self.begun: Counter[int] = Counter()
        # Actors whose `init` returned, and those whose `terminate` began.
        self.ready: set[str] = set()
        self.farewells: list[str] = []
        self.monitors: list[object] = []
        self.downs: Counter[int] = Counter()
        self.said: list[str] = []
        # Whether the scenario's block was entered, and whether its body came to its end.
        self.up = False
        self.left = False
        self.wrong: list[str] = []

    def ref(self, key: str) -> Ref[Actor]:
        """Give the latest incarnation of `key`."""
        return self.refs[key][-1]

    def lives(self, key: str) -> bool:
        """Say whether some incarnation of `key` is alive."""
        return any(ref.alive for ref in self.refs.get(key, []))

    def cast(self, key: str, message: Cast) -> None:
        """Tell the latest incarnation of `key`, if there ever was one."""
        if key in self.refs:
            self.ref(key).cast(message)

    def say(self, *facts: object) -> None:
        """Note a fact of the scenario."""
        self.said.append(" ".join(map(str, facts)))

    def check(self, holds: bool, law: str) -> None:
        """Note that `law` was broken, unless it `holds`."""
        if not holds:
            self.wrong.append(law)

    # What the players tell.

    def born(self, key: str, ref: Ref[Actor]) -> None:
        """Note an incarnation of an actor."""
        earlier = self.refs.setdefault(key, [])
        self.check(not self.lives(key), f"P2: two of {key} live at once")
        earlier.append(ref)

    async def body(self, key: str, work: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Note that a function child runs while it does `work(*args)`."""
        self.bodies[key] += 1
        self.check(self.bodies[key] == 1, f"P2: two of {key} live at once")
        try:
            return await work(*args)
        finally:
            self.bodies[key] -= 1

    def request(self, message: EchoCall, caller: Caller) -> None:
        """Note that a request is being executed."""
        self.begun[message.n] += 1
        self.check(self.begun[message.n] == 1, f"P13: {message!r} was executed twice")
        self.check(caller.waiting, f"P15: {message!r} is executed after its caller gave up")

    def down(self, message: Down) -> None:
        """Record that a watcher was notified of an end."""
        self.downs[id(message.monitor)] += 1
        self.monitors.append(message.monitor)
        self.check(self.downs[id(message.monitor)] == 1, "P20: one monitor, two Downs")
        self.check(not message.ref.alive, "P20: a Down of someone who lives")

    # What scenarios do.

    async def ask(self, ref: Ref[Actor], message: EchoCall, patience: float | None = 5.0) -> str:
        """Call, and give the answer or the error's name."""

        async def call() -> int:
            answer = await ref.call(message, timeout=patience)
            self.check(answer == message.n, f"P13: {message!r} got {answer}")
            return answer

        return await self.attempt(message, call())

    async def attempt(self, what: object, order: Awaitable[object]) -> str:
        """Do what may fail with an error of ours, and give its result or the error's name."""
        asked = TracedRequest(what)
        self.asked.append(asked)
        end = "interrupted"
        try:
            result = await order
            end = str(result) if isinstance(result, int) else "done"
        except OtpError as error:
            end = type(error).__name__
        finally:
            asked.ends.append(end)
        return end

    # The laws.

    def broken_laws(self) -> Iterator[str]:
        """Give each law that was broken, once the run is over."""
        yield from self.wrong
        yield from (f"P1: {key} has not ended" for key in self.refs if self.lives(key))
        yield from (f"P1: {key} has not ended" for key, count in self.bodies.items() if count)
        for asked in self.asked:
            if len(asked.ends) != 1:
                yield f"P13: {asked!r}"


class TracedActor(Actor):
    """An actor that notes everything."""

    mailbox = 2

    def __init__(
        self, trace: ScenarioTrace, key: str, init: float = 0.0, farewell: float = 0.1
    ) -> None:
        self.trace = trace
        self.key = key
        self.init_time = init
        self.farewell_time = farewell
        self.put_off: list[tuple[EchoCall, Caller]] = []
        self.handling = False

    async def init(self) -> None:
        self.trace.born(self.key, self.ref)
        await trio.sleep(self.init_time)
        self.trace.ready.add(self.key)

    async def handle_call(self, message: object, caller: Caller) -> object:
        assert isinstance(message, EchoCall)
        self.trace.check(not self.handling, f"P17: {self.key} handles two messages at once")
        self.trace.request(message, caller)
        if message.later:
            self.put_off.append((message, caller))
            return NOREPLY
        if message.wait:
            self.handling = True
            await trio.sleep(message.wait)
            self.handling = False
        return message.n

    async def handle_cast(self, message: Cast) -> None:
        if isinstance(message, CrashCast):
            raise ScenarioCrashError
        for question, caller in self.put_off:
            caller.reply(question.n)
        self.put_off.clear()

    async def handle_info(self, message: object) -> None:
        match message:
            case Down():
                self.trace.down(message)
            case Exit():
                self.trace.say(self.key, "heard an exit")
            case _:
                # A letter, which says nothing.
                pass

    async def terminate(self, reason: ExitReason) -> None:
        self.trace.farewells.append(self.key)
        self.trace.check(self.ref.alive, f"P19: {self.key} says farewell after its end")
        await trio.sleep(self.farewell_time)


class CrashLogHandler(logging.Handler):
    """Log handler that records the unexpected crashes."""

    def __init__(self, trace: ScenarioTrace) -> None:
        super().__init__()
        self.trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        """Note the crash that the record tells of."""
        error = getattr(getattr(record, "reason", None), "error", None)
        expected = ScenarioCrashError | InjectedCrashError | OtpError | KeyboardInterrupt
        if error is not None and not isinstance(error, expected):
            self.trace.wrong.append(f"an unexpected crash: {error!r}")

    def __enter__(self) -> Self:
        log.addHandler(self)
        self.before = log.propagate, log.level
        log.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        log.removeHandler(self)
        log.propagate, _level = self.before
