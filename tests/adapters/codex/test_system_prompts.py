"""The system prompt of a thread, and a different one in a later run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.manager import open_manager
from sessionmgr.model import FailureKind, Json
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter
from sessionmgr_adapters.codex.system_prompts import (
    SystemPromptCache,
    is_last_system_prompt,
    is_recorded,
)
from tests.adapters.codex.mock_agent import (
    HELLO,
    Talk,
    agent_of_frames,
    begin,
    end,
    opened,
    refusal,
    result,
    settled,
    thread_of,
)
from tests.adapters.codex.mocked_manager import manager_of

INJECT = "thread/inject_items"
THREAD = "01a1f0d2-07b7-7361-aabc-0547fc038fae"


def line(role: str, *texts: str) -> bytes:
    content = [{"type": "input_text", "text": each} for each in texts]
    payload = {"type": "message", "role": role, "content": content}
    return msgspec.json.encode({"type": "response_item", "payload": payload}) + b"\n"


def test_of_each_thread_the_last_one_is_remembered_and_of_not_too_many_threads() -> None:
    prompts = SystemPromptCache(limit=2)
    prompts.note("a", "one")
    prompts.note("b", None)
    assert (
        prompts.is_current("a", "one"),
        prompts.is_current("a", "two"),
        prompts.is_current("b", "one"),
    ) == (
        *(True, False),
        False,
    )
    prompts.note("a", "two")
    prompts.note("c", None, before="a")
    prompts.note("d", None, before="nobody's")
    assert ("b" in prompts, "d" in prompts) == (False, False)
    assert prompts.is_current("c", "two")


@pytest.mark.parametrize(
    ("lines", "stands"),
    [
        ([], False),
        ([line("developer", "Be kind.", "<permissions>")], True),
        ([line("user", "Be kind.")], False),
        ([line("developer", "Be kind.", "<p>"), line("developer", "<mode>")], True),
        ([line("developer", "Be kind.", "<p>"), line("developer", "Be terse.")], False),
        ([line("developer", "Be terse.", "<p>"), line("developer", "Be kind.")], True),
        ([b'{"role":"developer"\n', b'{"payload":{"content":"developer"}}\n'], False),
    ],
)
def test_the_last_system_prompt_of_a_record_is_the_one_that_stands(
    lines: list[bytes], *, stands: bool
) -> None:
    assert is_last_system_prompt(lines, "Be kind.") is stands


async def test_a_record_is_found_by_the_thread_or_there_is_none(tmp_path: Path) -> None:
    assert not await is_recorded(tmp_path, THREAD, "Be kind.")
    place = tmp_path / "sessions" / "2026" / "11"
    place.mkdir(parents=True)
    (place / f"rollout-2026-{THREAD}.jsonl").write_bytes(line("developer", "Be kind.", "<p>"))
    assert await is_recorded(tmp_path, THREAD, "Be kind.")
    assert not await is_recorded(tmp_path, THREAD, "Be terse.")


async def test_a_system_prompt_that_is_new_to_a_thread_is_told_to_its_model_once() -> None:
    async with (
        MockSdk(agent_of_frames) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": "/nowhere"},
        ) as manager,
    ):
        session = await manager.open_session("codex")
        for text in ("one", "one", "two", None, "two", "one"):
            run = await session.submit("hi", system_prompt=text)
            assert (await run.result()).status == "completed"
        calls = [
            [each for each in talk.heard_so_far if isinstance(each, RpcCall)]
            for talk in sdk.conversations
        ]
        told = [[each.params["items"] for each in some if each.method == INJECT] for some in calls]
        two, one = [items("two")], [items("one")]
        assert told == [[], [], two, [], [], one]


def items(text: str) -> Json:
    content: Json = [{"type": "input_text", "text": text}]
    return [{"type": "message", "role": "developer", "content": content}]


async def test_a_run_whose_system_prompt_cannot_be_told_is_not_begun() -> None:
    async def knows_no_such_call(it: Talk) -> None:
        it.says(HELLO)
        while True:
            call = await it.heard()
            assert isinstance(call, RpcCall)
            match call.method:
                case "config/read":
                    it.says(result(call, {"config": {}}))
                case "thread/start" | "thread/resume":
                    it.says(opened(call))
                case "thread/settings/update":
                    it.says(result(call, {}), settled(call))
                case "turn/start":
                    begin(it, call)
                    end(it, thread_of(call))
                case _:
                    it.says(refusal(call, "no such method", -32601))

    async with manager_of(knows_no_such_call) as manager:
        session = await manager.open_session("codex")
        first = await (await session.submit("hi", system_prompt="one")).result()
        assert first.status == "completed"
        second = await (await session.submit("hi", system_prompt="two")).result()
    assert second.failure is not None
    assert second.failure.kind is FailureKind.CONFIG_INVALID
    assert INJECT in second.failure.message
