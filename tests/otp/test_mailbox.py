"""Mailbox: the order of messages, and the behaviour of a full one."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import trio
from hypothesis import given, strategies as st

from sessionmgr.otp import (
    Actor,
    Call,
    Caller,
    CallTimeout,
    Cast,
    Down,
    Exit,
    MailboxFull,
    Ref,
    Supervisor,
    child,
)
from tests.otp.puppets import CrashError, Puppet, RunCast, in_virtual_time


class SentInfo(NamedTuple):
    """The n-th message of a sender, as info."""

    sender: str
    number: int


class SentCast(Cast):
    sender: str
    number: int


class SentCall(Call[int]):
    sender: str
    number: int


class WatchCall(Call[None]):
    """Want to know how a sender ends."""

    ref: Ref[Actor]


class ReceivingActor(Actor):
    """Hears everybody out, until the end of each."""

    trap_exit = True

    def __init__(self, heard: list[tuple[str, int]], pauses: list[int]) -> None:
        self.heard = heard
        self.pauses = pauses

    async def handle_call(self, message: object, caller: Caller) -> object:
        if isinstance(message, WatchCall):
            message.ref.monitor()
            message.ref.link()
            return None
        assert isinstance(message, SentCall)
        await self.hear(message.sender, message.number)
        return message.number

    async def handle_cast(self, message: Cast) -> None:
        assert isinstance(message, SentCast)
        await self.hear(message.sender, message.number)

    async def handle_info(self, message: object) -> None:
        match message:
            case SentInfo(sender, number):
                await self.hear(sender, number)
            case Down(ref=ref) | Exit(ref=ref):
                await self.hear(ref.id, LAST)
            case _:
                raise TypeError(message)

    async def hear(self, sender: str, number: int) -> None:
        self.heard.append((sender, number))
        pause = self.pauses[len(self.heard) % len(self.pauses)]
        if pause:
            await trio.sleep(pause)


LAST = 1_000_000

sayings = st.lists(
    st.sampled_from(["cast", "call", "impatient call", "send", "post", "pause"]), max_size=8
)


@given(
    speeches=st.lists(st.tuples(sayings, st.sampled_from(["crash", "end", "kill"])), max_size=4),
    pauses=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    room=st.sampled_from([1, 2, 100]),
    schedule=st.random_module(),
)
def test_p12_each_senders_messages_come_in_the_order_in_which_it_sent_them_and_its_end_last(
    speeches: list[tuple[list[str], str]], pauses: list[int], room: int, schedule: object
) -> None:
    heard: list[tuple[str, int]] = []
    said: dict[str, list[int]] = {str(n): [] for n in range(len(speeches))}
    unsure: dict[str, list[int]] = {name: [] for name in said}

    class Small(ReceivingActor):
        mailbox = room

    async def speak(puppet: Puppet, speech: list[str], listener: Ref[Small]) -> None:
        name = puppet.ref.id
        for number, how in enumerate(speech):
            with contextlib.suppress(MailboxFull, CallTimeout):
                if how == "impatient call":
                    unsure[name].append(number)
                    await listener.call(SentCall(name, number), timeout=1)
                    unsure[name].remove(number)
                elif how == "pause":
                    await trio.sleep(1)
                    continue
                elif how == "cast":
                    listener.cast(SentCast(name, number))
                elif how == "post":
                    listener.post(SentInfo(name, number))
                elif how == "send":
                    await listener.send(SentInfo(name, number))
                else:
                    assert await listener.call(SentCall(name, number), timeout=None) == number
                said[name].append(number)

    async def main() -> None:
        listeners = child(Small, heard, pauses, id="listener")
        async with Supervisor(listeners, max_restarts=0) as sup:
            listener = sup.ref("listener", Small)
            refs: list[Ref[Puppet]] = []
            for name, (speech, end) in zip(said, speeches, strict=True):
                ref = await sup.start_child(child(Puppet, id=name, restart="temporary"))
                refs.append(ref)
                await listener.call(WatchCall(ref), timeout=None)

                async def live(puppet: Puppet, speech: list[str] = speech, end: str = end) -> None:
                    await speak(puppet, speech, listener)
                    if end == "crash":
                        raise CrashError
                    puppet.ref.kill() if end == "kill" else puppet.ref.stop()

                ref.cast(RunCast(live))
            for ref in refs:
                await ref.wait()
            await listener.call(SentCall("", 0), timeout=None)

    in_virtual_time(main)
    for name, numbers in said.items():
        mine = [number for sender, number in heard if sender == name]
        assert mine[-2:] == [LAST, LAST], "one Down and one Exit, and nothing after them"
        assert mine == sorted(mine)
        assert sorted({*numbers, *unsure[name]} & set(mine)) == mine[:-2]
        assert set(numbers) <= set(mine)
