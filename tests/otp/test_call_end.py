"""Ends of calls: each call ends once and for the right reason, however caller and callee end."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import trio
from hypothesis import given, strategies as st

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    ActorDown,
    Call,
    Caller,
    CallTimeout,
    ChildRunning,
    Continue,
    Ref,
    Registry,
    Stop,
    Supervisor,
    child,
)
from tests.otp.puppets import CrashError, in_virtual_time

SERVERS = ["a", "b", "c"]


class ServerCall(Call[int]):
    """A question whose answer is its number; and what the server does instead."""

    number: int
    how: str
    seconds: int = 0
    on: str = "a"


class CallRefusedError(Exception):
    """What `caller.fail` says here."""


class Office:
    """What servers and callers share: the names, the time, and what was seen."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.names = Registry()
        self.nursery = nursery
        self.kept: list[Caller] = []
        self.seen: list[Caller] = []
        self.begun_for_nobody: list[Caller] = []
        self.deaths: dict[Ref[Actor], float] = {}

    async def witness(self, ref: Ref[Actor]) -> None:
        await ref.wait()
        self.deaths[ref] = trio.current_time()

    async def answer_later(self, caller: Caller, job: ServerCall) -> None:
        await trio.sleep(job.seconds)
        if job.how == "hand over":
            caller.reply(job.number)
        else:
            caller.fail(CallRefusedError())


class ServerActor(Actor):
    """Does what a job says."""

    def __init__(self, name: str, office: Office) -> None:
        self.name = name
        self.office = office

    async def init(self) -> None:
        self.office.names.register(self.name)
        self.office.nursery.start_soon(self.office.witness, self.ref)

    async def handle_continue(self, arg: object) -> None:
        assert isinstance(arg, Caller)
        assert isinstance(arg.message, ServerCall)
        await trio.sleep(arg.message.seconds)
        arg.reply(arg.message.number)

    async def handle_call(self, message: object, caller: Caller) -> object:
        assert isinstance(message, ServerCall)
        office = self.office
        office.seen.append(caller)
        if not caller.waiting:
            office.begun_for_nobody.append(caller)
        if message.how in ("hand over", "hand over to refuse"):
            office.nursery.start_soon(office.answer_later, caller, message)
            return NOREPLY
        if message.how == "continue":
            return Continue(caller)
        await trio.sleep(message.seconds)
        match message.how:
            case "crash":
                raise CrashError
            case "stop":
                raise Stop(reply=message.number)
            case "leave":
                raise Stop
            case "refuse":
                caller.fail(CallRefusedError())
                return NOREPLY
            case "keep":
                office.kept.append(caller)
                return NOREPLY
            case "answer the kept":
                for kept in office.kept:
                    assert isinstance(kept.message, ServerCall)
                    kept.reply(kept.message.number)
                office.kept.clear()
            case "ask on":
                further = ServerCall(message.number, "answer", message.seconds)
                return await office.names.via(message.on).call(further, timeout=2)
            case _:
                pass
        return message.number


class PlannedCall(NamedTuple):
    """Who is asked what, when, and how long for: by the call, and by the caller's own scope."""

    at: int
    to: str
    how: str
    seconds: int
    on: str
    timeout: int | None
    patience: int | None


class ServerEnd(NamedTuple):
    """Something that befalls a server."""

    at: int
    to: str
    how: str


HOWS = [
    "answer",
    "crash",
    "stop",
    "leave",
    "refuse",
    "keep",
    "answer the kept",
    "hand over",
    "hand over to refuse",
    "continue",
    "ask on",
]
moments = st.integers(0, 6)
servers = st.sampled_from(SERVERS)
questions = st.builds(
    PlannedCall,
    at=moments,
    to=servers,
    how=st.sampled_from(HOWS),
    seconds=st.integers(0, 3),
    on=servers,
    timeout=st.sampled_from([None, 0, 1, 2, 3]),
    patience=st.sampled_from([None, 0, 1, 2, 3]),
)
blows = st.builds(
    ServerEnd, moments, servers, st.sampled_from(["kill", "stop", "terminate", "restart"])
)


class CallResult(NamedTuple):
    """How a call ended."""

    how: str
    began: float
    ended: float
    asked: Ref[Actor] | None


async def ask(
    office: Office, number: int, question: PlannedCall, answers: list[CallResult]
) -> None:
    await trio.sleep(question.at)
    began = trio.current_time()
    owners = office.names.lookup(question.to)
    ref = owners[0].ref if owners else office.names.via(question.to)

    def ends(how: str) -> None:
        answers.append(CallResult(how, began, trio.current_time(), ref if owners else None))

    patience = trio.CancelScope()
    if question.patience is not None:
        patience.deadline = began + question.patience
    with patience:
        try:
            job = ServerCall(number, question.how, question.seconds, question.on)
            value = await ref.call(job, timeout=question.timeout)
        except (ActorDown, CallTimeout, CallRefusedError) as error:
            ends(type(error).__name__)
        else:
            ends("answered" if value == number else "answered with the answer of another call")
    if patience.cancelled_caught:
        ends("cancelled")


async def strike(office: Office, sup: Supervisor, blow: ServerEnd) -> None:
    await trio.sleep(blow.at)
    owners = office.names.lookup(blow.to)
    with contextlib.suppress(ChildRunning):
        if blow.how == "terminate":
            await sup.terminate_child(blow.to)
        elif blow.how == "restart":
            await sup.restart_child(blow.to)
        elif owners:
            owners[0].ref.kill() if blow.how == "kill" else owners[0].ref.stop()


@given(
    questions=st.lists(questions, max_size=12),
    blows=st.lists(blows, max_size=4),
    room=st.integers(1, 3),
    schedule=st.random_module(),
)
def test_p13_every_call_ends_exactly_once(
    questions: list[PlannedCall], blows: list[ServerEnd], room: int, schedule: object
) -> None:
    answers: list[list[CallResult]] = [[] for _ in questions]

    class Small(ServerActor):
        mailbox = room

    async def main() -> Office:
        with trio.fail_after(100):
            async with trio.open_nursery() as nursery:
                office = Office(nursery)
                servers = [child(Small, name, office, id=name) for name in SERVERS]
                async with Supervisor(*servers, max_restarts=1000) as sup:
                    async with trio.open_nursery() as blows_nursery:
                        for number, question in enumerate(questions):
                            nursery.start_soon(ask, office, number, question, answers[number])
                        for blow in blows:
                            blows_nursery.start_soon(strike, office, sup, blow)
                    await trio.sleep(20)
        return office

    office = in_virtual_time(main)
    assert [len(ends) for ends in answers] == [1] * len(questions)
    assert not [caller for caller in office.seen if caller.waiting]
    assert office.begun_for_nobody == []
    for question, (answer,) in zip(questions, answers, strict=True):
        duration = answer.ended - answer.began
        if answer.asked is not None:
            assert answer.ended <= office.deaths[answer.asked]
        assert question.timeout is None or duration <= question.timeout
        assert question.patience is None or duration <= question.patience
        match answer.how:
            case "answered":
                assert question.how not in ("crash", "leave", "refuse", "hand over to refuse")
            case "CallRefusedError":
                assert question.how in ("refuse", "hand over to refuse")
            case "CallTimeout":
                assert duration == question.timeout
            case "cancelled":
                assert duration == question.patience
            case _:
                assert answer.how == "ActorDown"
                assert answer.asked is None or answer.ended == office.deaths[answer.asked]
