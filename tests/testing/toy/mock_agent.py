"""The toy agent once more, as a script for a mock: it understands what `program.py` does."""

import trio

from sessionmgr.adapter import Allow
from sessionmgr.testing.mock_sdk import INTERRUPTED, MockConversation, SentAnswer
from sessionmgr.testing.toy.frames import (
    Frame,
    Outgoing,
    ToyHello,
    ToyMore,
    ToyOpen,
    ToyQuestion,
    ToySay,
    ToyText,
    ToyTextDelta,
    ToyTook,
    ToyToolBegan,
    ToyToolEnded,
    ToyTurnEnded,
)
from sessionmgr.wire import NoFrame

Talk = MockConversation[Outgoing, Frame | NoFrame]


async def agent_of_frames(it: Talk) -> None:
    """Play one conversation."""
    assert isinstance(it.opening, ToyOpen)
    it.says(ToyHello(it.opening.session or f"mocked-{id(it)}"))
    heard = await it.heard()
    assert isinstance(heard, ToySay)
    prompts = [heard.text]
    while prompts:
        for order in prompts.pop(0).split(";"):
            if not await obey(it, order.strip(), prompts):
                return
    it.says(ToyTurnEnded("done"))


async def obey(it: Talk, order: str, prompts: list[str]) -> bool:
    """Follow one order; False ends the turn."""
    verb, _, rest = order.partition(" ")
    match verb:
        case "use":
            it.says(ToyToolBegan("t1", rest), ToyToolEnded("t1"))
        case "fail":
            it.says(ToyTurnEnded("error", rest))
            return False
        case "wait":
            while (heard := await it.heard()) != INTERRUPTED:
                hear(it, heard, prompts)
            it.says(ToyTurnEnded("cancelled"))
            return False
        case "deaf":
            await trio.sleep_forever()
        case "ask":
            return await ask(it, rest, prompts)
        case _:
            text = rest if verb == "say" else order
            it.says(*(ToyTextDelta(letter, order) for letter in text))
            it.says(ToyText(text, order))
    return True


async def ask(it: Talk, tool: str, prompts: list[str]) -> bool:
    """Ask, and hear what else is said meanwhile."""
    it.says(ToyQuestion("q1", tool))
    while True:
        match await it.heard():
            case SentAnswer("q1", decision):
                if isinstance(decision, Allow):
                    it.says(ToyToolBegan("q1", tool), ToyToolEnded("q1"))
                return True
            case heard if heard == INTERRUPTED:
                it.says(ToyTurnEnded("cancelled"))
                return False
            case heard:
                hear(it, heard, prompts)


def hear(it: Talk, heard: object, prompts: list[str]) -> None:
    """Take another message into the turn."""
    assert isinstance(heard, ToyMore), heard
    prompts.append(heard.text)
    it.says(ToyTook(heard.id, taken=True))
