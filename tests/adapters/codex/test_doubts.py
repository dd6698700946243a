"""What must not happen: late words taken for new ones, and more done than was allowed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from sessionmgr.manager import open_manager
from sessionmgr.manager.plan import RunWish
from sessionmgr.model import FailureKind, Json, MessageReceived, MessageSent, RunStarted
from sessionmgr.provider import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import INTERRUPTED, Answered, MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter, CodexOptions, CodexTool
from sessionmgr_adapters.codex.frames import Asking, ItemStarted, TurnError
from sessionmgr_adapters.codex.hello import keys_in
from sessionmgr_adapters.codex.items import FileChange, FileUpdate
from sessionmgr_adapters.codex.orders import Call
from sessionmgr_adapters.codex.questions import COMMAND, EDIT, ELICITATION, PERMISSIONS, verdict
from sessionmgr_adapters.codex.rules import loose_rules
from tests.adapters.codex.mocked import (
    HELLO,
    TURN,
    Talk,
    begin,
    end,
    opened,
    opening,
    result,
    settled,
    text,
    thread_of,
)
from tests.adapters.codex.playing import ask, failure, manager_of, play


async def test_the_end_of_an_earlier_turn_is_not_that_of_this_one() -> None:
    async def haunted(it: Talk) -> None:
        call = await opening(it)
        end(it, thread_of(call), "interrupted", turn="turn-0")
        begin(it, call)
        end(it, thread_of(call), "interrupted", turn="turn-0")
        it.says(*text(thread_of(call), "well"))
        end(it, thread_of(call))

    done, events = await play(haunted)
    assert (done.status, done.text, done.turns) == ("completed", "well", 1)
    assert [each.content for each in events if isinstance(each, MessageReceived)] == ["well"]


async def test_a_second_run_on_a_thread_that_was_begun_here_is_refused() -> None:
    async def long(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        assert await it.heard() == INTERRUPTED
        end(it, thread_of(call), "interrupted")

    async with (
        MockSdk(long) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"codex": with_sdk(CodexAdapter, sdk)}
        ) as manager,
    ):
        run = await (await manager.open_session("codex")).submit("hi")
        thread = None
        async for event in run:
            if isinstance(event, RunStarted):
                thread = event.provider_session_id
                break
        other = await manager.open_session("codex")
        wish = RunWish(prompt="me too", provider_session_id=thread)
        second = await (await other.admit(wish)).result()
        assert second.failure is not None
        assert second.failure.kind == FailureKind.SESSION_BUSY
        run.cancel()
        assert (await run.result()).status == "cancelled"


async def test_nobody_but_us_answers_what_is_asked() -> None:
    starts: list[Json] = []

    async def another_answers(it: Talk) -> None:
        it.says(HELLO)
        for _ in range(2):
            call = await it.heard()
            assert isinstance(call, Call)
            if call.method == "thread/start":
                starts.append(call.params["approvalsReviewer"])
                it.says(opened(call))
                continue
            told = settled(Call(0, "", {**call.params, "approvalsReviewer": "auto_review"}))
            it.says(result(call, {}), told)

    kind, message = failure(await play(another_answers))
    assert kind == FailureKind.PERMISSION_REFUSED
    assert "where 'auto_review' answers" in message
    assert starts == ["user"]


async def test_what_was_told_before_says_nothing_of_what_is_in_force() -> None:
    async def early(it: Talk) -> None:
        it.says(HELLO)
        call = await it.heard()
        assert isinstance(call, Call)
        answer = opened(call)
        thread = msgspec.json.decode(answer.result)["thread"]["id"]
        told: dict[str, Json] = {"threadId": thread, "approvalPolicy": "on-request"}
        it.says(answer, settled(Call(0, "", {**told, "sandboxPolicy": {"type": "readOnly"}})))
        update = await it.heard()
        assert isinstance(update, Call)
        wide: Json = {"type": "dangerFullAccess"}
        it.says(result(update, {}))
        await trio.testing.wait_all_tasks_blocked()
        it.says(settled(Call(0, "", {**told, "sandboxPolicy": wide})))

    assert failure(await play(early))[0] == FailureKind.PERMISSION_REFUSED


async def test_an_edit_of_files_that_are_not_known_is_not_granted() -> None:
    params: dict[str, Json] = {"itemId": "unknown", "grantRoot": "."}
    answer = await ask(Asking(0, EDIT, params), mode="accept_edits")
    assert isinstance(answer, Answered)
    assert isinstance(answer.decision, Deny)


@pytest.mark.parametrize(
    ("rules", "allows"),
    [
        ('prefix_rule(pattern=["touch"], decision="allow")', True),
        ('prefix_rule(\n  pattern = ["touch"],\n)', True),
        ('prefix_rule(pattern=["rm"], decision = "forbidden")', False),
        ('prefix_rule(pattern=["rm"], decision=\'prompt\')\n# prefix_rule(pattern=["a"])', False),
        ('prefix_rule(pattern=["rm"], decision="prompt")\nnetwork_rule(host="a")', True),
        ("", False),
    ],
)
def test_rules_that_allow_something_are_found(tmp_path: Path, rules: str, allows: bool) -> None:
    for place in ("home", "work/.codex"):
        file = tmp_path / place / "rules" / "default.rules"
        file.parent.mkdir(parents=True)
        file.write_text(rules)
        found = loose_rules(tmp_path / "home", tmp_path / "work" / "inner")
        assert found == (file if allows else None)
        file.unlink()


@pytest.mark.parametrize(
    ("mode", "ruled", "runs"),
    [
        ("default", False, True),
        ("accept_edits", False, True),
        ("plan", False, False),
        ("full_auto", False, False),
        ("full_auto", True, True),
        ("dangerously_skip_permissions", False, True),
    ],
)
async def test_rules_that_let_commands_out_are_no_part_of_a_mode_that_confines(
    tmp_path: Path, mode: str, ruled: bool, runs: bool
) -> None:
    (tmp_path / "rules").mkdir()
    file = tmp_path / "rules" / "default.rules"
    file.write_text('prefix_rule(pattern=["touch"], decision="allow")')

    async def simple(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        end(it, thread_of(call))

    found = await play(simple, mode=mode, options={"rules": ruled, "home": str(tmp_path)})
    if runs:
        assert found[0].status == "completed"
    else:
        kind, message = failure(found)
        assert kind == FailureKind.PERMISSION_REFUSED
        assert message.startswith(f"the rules in {file} let commands out of the sandbox, in {mode}")


@pytest.mark.parametrize(
    "config",
    [
        {"model_providers.a.env_key": "WORD"},
        {"model_providers.a": {"env_key": "WORD", "name": "env_key"}},
        {"model_providers": {"a": {"env_key": "WORD"}}, "model": "x"},
    ],
)
def test_the_keys_that_overrides_name_are_found(config: dict[str, Json]) -> None:
    assert keys_in(config) == ("WORD",)


@pytest.mark.parametrize(
    ("method", "params", "given", "allowed"),
    [
        (COMMAND, {"command": "rm -rf .", "cwd": "/"}, {"command": "ls", "cwd": "/"}, False),
        (COMMAND, {"command": "ls", "cwd": "/"}, {"command": "ls", "cwd": "/"}, True),
        (EDIT, {}, {"changes": []}, False),
        (
            ELICITATION,
            {"_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"a": 1}}},
            {"a": 2},
            False,
        ),
        (ELICITATION, {"serverName": "s"}, {"name": "me"}, True),
        (PERMISSIONS, {"permissions": {"network": {"enabled": True}}}, {}, True),
    ],
)
async def test_what_was_allowed_otherwise_than_asked_is_not_done_as_asked(
    method: str, params: dict[str, Json], given: Json, allowed: bool
) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        return Allow(tool_input=given)

    asking = Asking(0, method, {"itemId": "c", **params})
    answer = await ask(asking, approve=approve)
    assert isinstance(answer, Answered)
    assert isinstance(answer.decision, Allow) is allowed


def test_permissions_are_given_as_far_as_they_are_allowed() -> None:
    asked: dict[str, Json] = {"permissions": {"network": {"enabled": True}}}
    asking = Asking(0, PERMISSIONS, asked)
    assert verdict(asking, Allow()) == {**asked, "scope": "turn"}
    assert verdict(asking, Allow(tool_input={})) == {"permissions": {}, "scope": "turn"}
    assert verdict(asking, Deny()) == {"permissions": {}, "scope": "turn"}


@pytest.mark.parametrize("method", [COMMAND, EDIT, PERMISSIONS, ELICITATION])
async def test_nothing_leads_out_of_a_sandbox_in_which_nobody_is_asked(method: str) -> None:
    answer = await ask(Asking(0, method, {"itemId": "c"}), mode="full_auto")
    assert isinstance(answer, Answered)
    assert isinstance(answer.decision, Deny)


async def test_an_edit_of_a_path_that_cannot_be_is_not_granted() -> None:
    item = FileChange(id="c", changes=[FileUpdate("a\0b")], status="inProgress")
    asking = Asking(0, EDIT, {"itemId": "c"})
    answer = await ask(asking, mode="accept_edits", before=ItemStarted(item=item))
    assert isinstance(answer, Answered)
    assert isinstance(answer.decision, Deny)


@pytest.mark.parametrize("dies", [False, True])
async def test_a_message_that_was_taken_and_never_heard_is_told_of(dies: bool) -> None:
    async def distracted(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(*text(thread_of(call), "one"))
        steer = await it.heard()
        assert isinstance(steer, Call)
        it.says(result(steer, {"turnId": TURN}))
        await trio.testing.wait_all_tasks_blocked()
        if dies:
            it.ends()
        else:
            end(it, thread_of(call), "failed", TurnError(message="no", codex_error_info="other"))

    async with manager_of(distracted) as manager:
        run = await (await manager.open_session("codex")).submit("hi")
        async for event in run:
            if isinstance(event, MessageReceived):
                await run.append("more")
        assert (await run.result()).status == "failed"
        said = [each async for each in run if isinstance(each, MessageSent)]
    assert [(each.content, each.state) for each in said][-1] == ("more", "dropped")


async def test_functions_are_not_dropped_in_silence_where_none_can_be_called() -> None:
    async def unused(it: Talk) -> None:
        raise AssertionError(it)

    async def nothing(given: dict[str, Json]) -> Json:
        await trio.lowlevel.checkpoint()
        return given

    options = CodexOptions(exec=True, tools=(CodexTool("f", "Do nothing.", nothing),))
    kind, message = failure(await play(unused, options=options))
    assert kind == FailureKind.CONFIG_INVALID
    assert message.startswith("options.tools: ")


@pytest.mark.parametrize(
    ("path", "granted"),
    [
        ("src/a.py", True),
        (".gitignore", True),
        (".git/hooks/pre-commit", False),
        ("inner/.codex/rules/a.rules", False),
        ("link/hooks/pre-commit", False),
        ("../outside", False),
    ],
)
async def test_what_may_be_run_one_day_is_no_edit_that_is_granted_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, granted: bool
) -> None:
    work = tmp_path / ".codex" / "worktree"
    (work / ".git").mkdir(parents=True)
    (work / "link").symlink_to(".git")
    monkeypatch.chdir(work)
    item = FileChange(id="c", changes=[FileUpdate(path)], status="inProgress")
    asking = Asking(0, EDIT, {"itemId": "c"})
    answer = await ask(asking, mode="accept_edits", before=ItemStarted(item=item))
    assert isinstance(answer, Answered)
    assert isinstance(answer.decision, Allow) is granted
