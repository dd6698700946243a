"""Requests of a provider that cannot accept every decision."""

from collections.abc import Sequence

import pytest
from trio.testing import MockClock

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny, RunContext
from sessionmgr.adapter.kit.request_handler import RequestHandler
from sessionmgr.manager import open_manager
from sessionmgr.model import ErrorOccurred, FailureKind, Json
from sessionmgr.testing.mock_sdk import MockConversation, MockSdk, SentAnswer, with_sdk
from sessionmgr.testing.toy import ToyAdapter
from sessionmgr.testing.toy.driver import ToyDriver
from sessionmgr.testing.toy.frames import (
    AnyFrame,
    Outgoing,
    ToyHello,
    ToyQuestion,
    ToySay,
    ToyTurnEnded,
)


class RigidDriver(ToyDriver):
    """Driver whose agent cannot replace the input of a tool."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self._rigid = RequestHandler(self, takes_input=False)

    def handle_frames(self, frames: Sequence[AnyFrame]) -> None:
        for frame in frames:
            match frame:
                case ToyQuestion(id=id_, name=name, input=given):
                    self._rigid.ask(id_, ApprovalRequest(tool_name=name, tool_input=given))
                case _:
                    super().handle_frames([frame])


class RigidAdapter(ToyAdapter):
    def make_driver(self, run: RunContext) -> ToyDriver:
        return RigidDriver(run)


@pytest.mark.parametrize(("tool_input", "is_done"), [({"n": 1}, True), ({"n": 2}, False)])
async def test_another_input_is_denied_where_the_provider_takes_none(
    autojump_clock: MockClock, tool_input: Json, is_done: bool
) -> None:
    answers: list[object] = []

    async def script(it: MockConversation[Outgoing, AnyFrame]) -> None:
        await it.expect(ToySay("hi"))
        it.says(ToyHello("s1"), ToyQuestion("q1", "saw", {"n": 1}))
        answers.append(await it.heard())
        it.says(ToyTurnEnded())

    async def approve(request: ApprovalRequest) -> Decision:
        return Allow(tool_input=tool_input)

    async with (
        MockSdk(script) as sdk,
        open_manager(adapters={"toy": with_sdk(RigidAdapter, sdk)}) as manager,
    ):
        session = await manager.open_session("toy")
        async with session.start("hi", approve=approve) as run:
            events = [event async for event in run]
    (answer,) = answers
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Allow if is_done else Deny)
    kinds = [each.failure.kind for each in events if isinstance(each, ErrorOccurred)]
    assert kinds == ([] if is_done else [FailureKind.CAPABILITY_MISSING])
