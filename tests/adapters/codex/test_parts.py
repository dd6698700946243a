"""The pure parts: events for items, approval requests, and Codex's terms for the modes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from sessionmgr.adapter import Allow, Decision, Deny
from sessionmgr.adapter.kit.images import PromptImage
from sessionmgr.adapter.kit.json_rpc_caller import PeerRequest
from sessionmgr.adapter.kit.program_version import outdated_failure
from sessionmgr.model import (
    Event,
    Json,
    MessageStreamed,
    RateLimitUpdated,
    ToolCallFailed,
    ToolCallStarted,
)
from sessionmgr.process import secret_values
from sessionmgr.wire import Line, OversizedFrame, RpcNotification, RpcRequest, UntypedFrame
from sessionmgr_adapters.codex.approvals import approval_request, request_name, verdict
from sessionmgr_adapters.codex.configure import OLDEST_VERSION
from sessionmgr_adapters.codex.decode import decode_notice, peer_request_of, read_notices
from sessionmgr_adapters.codex.frames import (
    AccountLimits,
    CodexMessageDelta,
    CodexTurn,
    ErrorNotice,
    ItemEndedNotice,
    ItemStartedNotice,
    LimitsNotice,
    LimitWindow,
    Notice,
    ServerInfo,
    SilentNotice,
    ThreadClosedNotice,
    ThreadRef,
    ThreadSettings,
    ThreadStartedNotice,
    TurnEndedNotice,
    TurnError,
    TurnStartedNotice,
    UnknownNotice,
    WarningNotice,
)
from sessionmgr_adapters.codex.items import (
    AgentMessageItem,
    CollabToolCallItem,
    FileChangeItem,
    FileUpdate,
    McpToolCallItem,
    UnknownItem,
    bare_script,
    read_item,
)
from sessionmgr_adapters.codex.launch import CODEX_ENVIRONMENT, declared_variables, prompt_content
from sessionmgr_adapters.codex.normalise import normalise
from sessionmgr_adapters.codex.permissions import (
    PERMISSIONS,
    POLICIES,
    SandboxBounds,
    too_wide_failure,
)
from sessionmgr_adapters.codex.state import CodexState


def state() -> CodexState:
    made = CodexState()
    made.thread, made.turn, made.started = "t", "u", True
    return made


def shown(events: list[Event]) -> list[tuple[str, Json]]:
    """Return the inputs and outputs of tools."""
    return [
        (each.type, getattr(each, "tool_output", getattr(each, "tool_input", None)))
        for each in events
    ]


# --- items ---------------------------------------------------------------------------------------

ITEMS: list[tuple[dict[str, Json], str, Json, Json]] = [
    (
        {"type": "mcpToolCall", "server": "lab", "tool": "add", "arguments": {"a": 1}},
        "mcp__lab__add",
        {"a": 1},
        None,
    ),
    (
        {"type": "fileChange", "changes": [{"path": "a", "kind": {"type": "add"}, "diff": "+x"}]},
        "apply_patch",
        {"changes": [{"path": "a", "kind": {"type": "add"}, "diff": "+x"}]},
        "",
    ),
    ({"type": "webSearch", "query": "trio"}, "web_search", {"query": "trio"}, None),
    ({"type": "imageView", "path": "/a.png"}, "view_image", {"path": "/a.png"}, None),
    ({"type": "sleep", "durationMs": 1500}, "sleep", {"seconds": 1.5}, None),
    (
        {"type": "imageGeneration", "status": "completed", "result": "aGk=", "revisedPrompt": "a"},
        "image_generation",
        {"prompt": "a"},
        "completed",
    ),
    (
        {"type": "collabAgentToolCall", "tool": "spawnAgent", "prompt": "look"},
        "spawnAgent",
        {"prompt": "look", "model": None},
        None,
    ),
    (
        {"type": "dynamicToolCall", "tool": "weather", "arguments": {}, "contentItems": []},
        "weather",
        {},
        [],
    ),
]


@pytest.mark.parametrize(("item", "name", "given_", "output"), ITEMS)
def test_whatever_is_done_is_a_call_with_a_start_and_an_end(
    item: dict[str, Json], name: str, given_: Json, output: Json
) -> None:
    read = read_item(msgspec.json.encode({"id": "c", **item}))
    known = state()
    events = normalise(ItemStartedNotice(thread_id="t", item=read), known)
    events += normalise(ItemEndedNotice(thread_id="t", item=read), known)
    started, ended = events
    assert isinstance(started, ToolCallStarted)
    assert (started.tool_name, started.tool_input) == (name, given_)
    assert shown([ended]) == [("tool_call_completed", output)]
    assert known.tools == {}


def test_a_call_whose_start_was_not_told_starts_with_its_end() -> None:
    item = FileChangeItem(id="c", changes=[FileUpdate("a")], status="declined")
    events = normalise(ItemEndedNotice(thread_id="t", item=item), state())
    assert [each.type for each in events] == ["tool_call_started", "tool_call_failed"]
    assert isinstance(events[1], ToolCallFailed)


def test_an_item_that_nobody_knows_is_told_as_it_came() -> None:
    item = read_item(b'{"type":"dream","id":"d"}')
    assert item == UnknownItem({"type": "dream", "id": "d"})
    assert shown(normalise(ItemStartedNotice(thread_id="t", item=item), state())) == [
        ("raw_received", None)
    ]
    assert read_item(b'{"type":[],"id":"d"}') == UnknownItem({"type": [], "id": "d"})


def test_what_an_agent_of_an_agent_says_is_told_as_its_callers() -> None:
    known = state()
    spawned = CollabToolCallItem(id="c", tool="spawnAgent", receiver_thread_ids=["child"])
    normalise(ItemStartedNotice(thread_id="t", item=spawned), known)
    normalise(ThreadStartedNotice(thread=ThreadRef(id="child", parent_thread_id="t")), known)
    [event] = normalise(
        ItemEndedNotice(thread_id="child", item=AgentMessageItem(id="m", text="hello")), known
    )
    assert event.parent_tool_call_id == "c"
    assert known.text == ""


@pytest.mark.parametrize(
    "frame",
    [
        WarningNotice(thread_id="child", message="the disk is nearly full"),
        UnknownNotice(thread_id="child", method="thread/dreamed"),
        ItemEndedNotice(thread_id="child", item=UnknownItem({"type": "dream"})),
    ],
)
def test_what_is_odd_in_the_thread_of_an_agent_is_told_as_its_callers(frame: Notice) -> None:
    known = state()
    spawned = CollabToolCallItem(id="c", tool="spawnAgent", receiver_thread_ids=["child"])
    normalise(ItemStartedNotice(thread_id="t", item=spawned), known)
    assert [each.parent_tool_call_id for each in normalise(frame, known)] == ["c"]


def test_images_go_with_the_prompt() -> None:
    content = prompt_content(
        "look", [PromptImage("image/png", b"\x89PNG"), PromptImage("image/gif", b"")]
    )
    assert content[1:] == [
        {"type": "image", "url": "data:image/png;base64,iVBORw=="},
        {"type": "image", "url": "data:image/gif;base64,"},
    ]
    assert content[0] == {"type": "text", "text": "look", "text_elements": []}


def test_a_message_whose_start_was_not_told_has_its_own_name() -> None:
    [event] = normalise(CodexMessageDelta(thread_id="t", item_id="m", delta="x"), state())
    assert isinstance(event, MessageStreamed)
    assert (event.message_id, event.delta) == ("m", "x")


def test_retries_of_an_agent_are_counted_anew_in_its_next_turn() -> None:
    known = state()
    failing = ErrorNotice(thread_id="child", error=TurnError(message="busy"), will_retry=True)
    attempts: list[object] = []
    for turn in ("first", "second"):
        normalise(TurnStartedNotice(thread_id="child", turn=CodexTurn(id=turn)), known)
        for _ in range(2):
            attempts += [getattr(each, "attempt", None) for each in normalise(failing, known)]
        normalise(TurnEndedNotice(thread_id="child", turn=CodexTurn(id=turn)), known)
    assert attempts == [1, 2, 1, 2]


def test_an_agent_whose_thread_was_closed_has_nothing_left_to_give_back() -> None:
    known = state()
    normalise(TurnStartedNotice(thread_id="child", turn=CodexTurn(id="u1")), known)
    assert list(known.agents.loaded) == ["child"]
    normalise(ThreadClosedNotice(thread_id="child"), known)
    assert (list(known.agents.loaded), list(known.agents.working)) == ([], [])


def limits_of(known: CodexState, limits: AccountLimits) -> list[tuple[str, float | None]]:
    events = normalise(LimitsNotice(rate_limits=limits), known)
    return [(e.bucket, e.utilisation) for e in events if isinstance(e, RateLimitUpdated)]


def test_news_of_a_limit_leaves_the_others_of_the_same_account_as_they_were() -> None:
    known = state()
    first = AccountLimits(
        limit_id="codex", primary=LimitWindow(used_percent=10), secondary=LimitWindow()
    )
    assert limits_of(known, first) == [("codex/primary", 0.1), ("codex/secondary", 0.0)]
    assert limits_of(known, AccountLimits(primary=LimitWindow(used_percent=20))) == [
        ("codex/primary", 0.2),
        ("codex/secondary", 0.0),
    ]
    assert limits_of(known, AccountLimits(limit_id="codex")) == []
    other = AccountLimits(limit_id="other", primary=LimitWindow(used_percent=30))
    assert limits_of(known, other) == [("other/primary", 0.3)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/bin/bash -lc 'echo hi; ls'", "echo hi; ls"),
        ("/bin/bash -c ls", "ls"),
        ("git status", "git status"),
        ("/usr/bin/zsh -lc 'git status'", "git status"),
        ("/bin/bash -lc 'unclosed", "/bin/bash -lc 'unclosed"),
        (r"""/bin/bash -lc "echo \$HOME 'x'" """.strip(), "echo $HOME 'x'"),
    ],
)
def test_a_command_is_told_without_the_shell_around_it(command: str, expected: str) -> None:
    assert bare_script(command) == expected


@pytest.mark.parametrize(
    "command",
    [
        "./bash -lc 'git status'",
        "./evil -c 'git status'",
        "bash -lc 'git status'",
        "/repo/bin/bash -lc 'git status'",
        "/bin/../repo/bash -lc 'git status'",
        "/usr/local/bin/bash -lc 'git status'",
        "'/bin/bash' -lc 'git status'",
        "python3 -c 'git status'",
        "/usr/bin/python3 -c 'git status'",
        "sudo -c 'git status'",
        "/bin/bash -ic 'git status'",
        "/bin/bash -l -c 'git status'",
        "/bin/bash --rcfile x -c 'git status'",
        "/bin/bash -lc 'git status' x",
        "/bin/bash -lc git status",
        "/bin/busybox -c 'git status'",
        "/bin/bash -lc 'git\0status'",
    ],
)
def test_a_command_is_shown_whole_unless_a_system_shell_is_given_a_script(command: str) -> None:
    assert bare_script(command) == command


# --- frames --------------------------------------------------------------------------------------


def test_a_notice_is_what_its_method_says() -> None:
    delta = decode_notice(
        RpcNotification("item/agentMessage/delta", b'{"threadId":"t","delta":"x"}')
    )
    assert delta == CodexMessageDelta(thread_id="t", delta="x")
    assert isinstance(
        decode_notice(RpcNotification("turn/diff/updated", b'{"threadId":"t"}')), SilentNotice
    )
    unknown = decode_notice(RpcNotification("thread/dreamed", b'{"threadId":"t"}'))
    assert unknown == UnknownNotice(
        method="thread/dreamed", params={"threadId": "t"}, thread_id="t"
    )
    assert isinstance(decode_notice(RpcNotification("turn/started", b'{"turn":5}')), UntypedFrame)


@given(method=st.sampled_from(["turn/completed", "item/started", "error", "x"]), data=st.binary())
def test_no_parameters_are_too_odd_to_be_told(method: str, data: bytes) -> None:
    normalise(decode_notice(RpcNotification(method, data)), state())
    peer_request_of(RpcRequest(1, method, data))


# --- modes ---------------------------------------------------------------------------------------


def in_force(approval: Json, sandbox: Json) -> ThreadSettings:
    return ThreadSettings(approval_policy=approval, sandbox_policy=sandbox)


def test_every_mode_has_a_policy() -> None:
    assert {each.effective for each in PERMISSIONS.modes.values()} == set(POLICIES)


@pytest.mark.parametrize("word", POLICIES)
def test_what_was_asked_for_is_not_too_wide_and_more_is(word: str) -> None:
    policy = POLICIES[word]
    wanted = policy.sandbox_policy(SandboxBounds(directories=("/a",), temporary=False))
    assert too_wide_failure(policy, wanted, in_force(policy.approval, wanted)) is None
    others = [each for each in POLICIES.values() if each.sandbox != policy.sandbox]
    order = ["read-only", "workspace-write", "danger-full-access"]
    for other in others:
        found = in_force(policy.approval, other.sandbox_policy(SandboxBounds()))
        is_wider = order.index(other.sandbox) > order.index(policy.sandbox)
        assert (too_wide_failure(policy, wanted, found) is not None) is is_wider
    assert too_wide_failure(policy, wanted, in_force(policy.approval, {"type": "new"})) is not None
    assert too_wide_failure(policy, wanted, in_force("granular", wanted)) is not None


@pytest.mark.parametrize("name", ["excludeSlashTmp", "excludeTmpdirEnvVar"])
def test_what_is_shared_by_all_is_more_than_what_is_the_sessions(name: str) -> None:
    policy = POLICIES["never, workspace-write"]
    wanted = policy.sandbox_policy(SandboxBounds(temporary=False))
    assert too_wide_failure(policy, wanted, in_force("never", {**wanted, name: False})) is not None


@pytest.mark.parametrize(
    ("found", "is_wider"),
    [
        ({"writableRoots": ["/a"]}, False),
        ({"writableRoots": []}, False),
        ({"writableRoots": ["/a", "/b"]}, True),
        ({"writableRoots": None}, True),
        ({"networkAccess": True}, True),
        ({"networkAccess": None}, True),
    ],
)
def test_more_directories_or_a_network_are_more_than_was_asked_for(
    found: dict[str, Json], is_wider: bool
) -> None:
    policy = POLICIES["never, workspace-write"]
    wanted = policy.sandbox_policy(SandboxBounds(directories=("/a",), temporary=True))
    known = in_force("never", {**wanted, **found})
    assert (too_wide_failure(policy, wanted, known) is not None) is is_wider


# --- approval requests ---------------------------------------------------------------------------

COMMAND = "item/commandExecution/requestApproval"
EDIT = "item/fileChange/requestApproval"
GRANTS = "item/permissions/requestApproval"
USER = "item/tool/requestUserInput"
MCP = "mcpServer/elicitation/request"
WANTED: Json = {"network": None, "fileSystem": {"write": ["/x"]}}

VERDICTS: list[tuple[str, Decision, Json]] = [
    (COMMAND, Allow(), {"decision": "accept"}),
    (COMMAND, Deny(), {"decision": "decline"}),
    (COMMAND, Deny(stop=True), {"decision": "cancel"}),
    (EDIT, Allow(), {"decision": "accept"}),
    ("execCommandApproval", Allow(), {"decision": "approved"}),
    ("applyPatchApproval", Deny(), {"decision": "denied"}),
    ("applyPatchApproval", Deny(stop=True), {"decision": "abort"}),
    (GRANTS, Allow(), {"permissions": WANTED, "scope": "turn"}),
    (GRANTS, Deny(), {"permissions": {}, "scope": "turn"}),
    (USER, Deny(), {"answers": {}}),
    (
        USER,
        Allow(tool_input={"answers": {"a": "blue", "b": ["x", "y"]}}),
        {"answers": {"a": {"answers": ["blue"]}, "b": {"answers": ["x", "y"]}}},
    ),
    (USER, Allow(), {"answers": {}}),
    (MCP, Allow(tool_input={"name": "x"}), {"action": "accept", "content": {"name": "x"}}),
    (MCP, Allow(), {"action": "accept", "content": None}),
    (MCP, Deny(), {"action": "decline", "content": None}),
    (MCP, Deny(stop=True), {"action": "cancel", "content": None}),
]


@pytest.mark.parametrize(("method", "decision", "expected"), VERDICTS)
def test_a_decision_is_said_in_codexs_words(
    method: str, decision: Decision, expected: Json
) -> None:
    assert verdict(PeerRequest(1, method, {"permissions": WANTED}), decision) == expected


def test_a_patch_is_a_question_about_all_its_files(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (work / "link").symlink_to(outside)
    change = FileChangeItem(
        id="c",
        changes=[
            FileUpdate("a"),
            FileUpdate("link/b"),
            FileUpdate("c", {"type": "update", "move_path": str(outside / "d")}),
        ],
    )
    asking = PeerRequest(1, EDIT, {"itemId": "c", "grantRoot": str(outside)})
    request = approval_request(asking, {"c": change}, str(work), [str(work)])
    assert (request.tool_name, request.effect) == ("apply_patch", "edit")
    assert request.paths == tuple(
        str(each) for each in (outside, work / "a", outside / "b", work / "c", outside / "d")
    )


def test_a_patch_that_was_not_told_of_is_about_no_file_that_is_known() -> None:
    assert approval_request(PeerRequest(1, EDIT, {"itemId": "c"}), {}, "/w", ["/w"]).paths == ()


def test_a_command_is_asked_as_it_is_told() -> None:
    params: dict[str, Json] = {"command": "/bin/bash -lc 'git push'", "cwd": "/w", "itemId": "c"}
    request = approval_request(PeerRequest(1, COMMAND, params), {}, "/w", ["/w"])
    assert (request.tool_name, request.tool_input) == (
        "shell",
        {"command": "git push", "cwd": "/w"},
    )
    network: dict[str, Json] = {**params, "networkApprovalContext": {"host": "x"}}
    assert approval_request(PeerRequest(1, COMMAND, network), {}, "/w", ["/w"]).effect == "network"
    old: dict[str, Json] = {"command": ["git", "push"], "callId": "c"}
    request = approval_request(PeerRequest(1, "execCommandApproval", old), {}, "/w", ["/w"])
    assert request.tool_input == {"command": "git push", "cwd": None}
    words: dict[str, Json] = {"command": ["./x", "-c", "a; b"], "callId": "c"}
    request = approval_request(PeerRequest(1, "execCommandApproval", words), {}, "/w", ["/w"])
    assert request.tool_input == {"command": "./x -c 'a; b'", "cwd": None}


def test_a_command_is_asked_with_the_directory_that_it_would_run_in(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(tmp_path)

    def directory(**named: Json) -> str:
        params: dict[str, Json] = {"command": "make", **named}
        asking = PeerRequest(1, COMMAND, params)
        return approval_request(asking, {}, str(work), [str(work)]).tool_cwd

    assert directory() == ""
    assert directory(cwd=str(work)) == str(work)
    assert directory(cwd="sub") == str(work / "sub")
    assert directory(cwd="..") == str(tmp_path)
    assert directory(cwd=str(work / "link" / "other")) == str(tmp_path / "other")


def test_a_tool_of_an_mcp_server_is_asked_by_its_own_name() -> None:
    about: Json = {
        "codex_approval_kind": "mcp_tool_call",
        "tool_name": "add",
        "tool_params": {"a": 1},
    }
    params: dict[str, Json] = {"serverName": "lab", "message": "Allow?", "_meta": about}
    call = McpToolCallItem(id="c", server="lab", tool="add")
    request = approval_request(
        PeerRequest(1, MCP, params), {"x": FileChangeItem(id="x"), "c": call}, "/", []
    )
    assert (request.tool_name, request.tool_input) == ("mcp__lab__add", {"a": 1})
    assert (request.tool_call_id, request.reason) == ("c", "Allow?")
    answer = verdict(PeerRequest(1, MCP, params), Allow(tool_input={"a": 2}))
    assert answer == {"action": "accept", "content": None}
    form = approval_request(PeerRequest(1, MCP, {"serverName": "lab"}), {}, "/", [])
    assert form.tool_name == "mcp__lab"


def test_one_and_its_text_are_two_questions() -> None:
    assert request_name(1) != request_name("1")


# --- the app-server's description of itself ------------------------------------------------------


def test_a_version_is_found_after_the_first_slash() -> None:
    greeting = ServerInfo(user_agent="sessionmgr/0.169.0 (Debian 12.0.0; x86_64) unknown (a; 1)")
    assert greeting.version == "0.169.0"
    assert ServerInfo(user_agent="nobody").version is None
    assert outdated_failure("Codex", "0.163.0", OLDEST_VERSION) is None
    assert outdated_failure("Codex", "1.0.0", OLDEST_VERSION) is None
    assert outdated_failure("Codex", "0.162.9", OLDEST_VERSION) is not None
    assert outdated_failure("Codex", None, OLDEST_VERSION) is not None


def test_who_pays_is_said_in_our_words() -> None:
    assert ServerInfo(account="chatgpt").credential == "subscription"
    assert ServerInfo(account="apiKey").credential == "api_key"
    assert ServerInfo().credential == "unknown"


def test_the_keys_that_its_configuration_names_are_passed_on_as_secrets(tmp_path: Path) -> None:
    assert declared_variables({"HOME": str(tmp_path)}) == CODEX_ENVIRONMENT
    place = tmp_path / ".codex"
    place.mkdir()
    (place / "config.toml").write_text('[model_providers.a]\nenv_key = "THE_WORD"\n')
    found = declared_variables({"HOME": str(tmp_path)})
    assert found.names == (*CODEX_ENVIRONMENT.names, "THE_WORD")
    assert secret_values({"THE_WORD": "open sesame"}, found) == ("open sesame",)
    (place / "config.toml").write_text("not = [toml")
    assert declared_variables({"CODEX_HOME": str(place)}) == CODEX_ENVIRONMENT


def test_a_line_that_is_no_notice_costs_no_other_line_of_its_read_anything() -> None:
    def line(method: str, **params: Json) -> bytes:
        return msgspec.json.encode({"method": method, "params": {"threadId": "t", **params}})

    delta = line("item/agentMessage/delta", itemId="m", delta="x")
    lines: list[Line] = [
        delta,
        b"noise",
        line("item/completed", item={"type": "agentMessage", "id": "m", "text": "x"}),
        OversizedFrame(99, b"{"),
        delta,
        line("item/started", item={"type": "new"}),
        b'{"id": 1, "result": {}}',
        delta,
    ]
    piece = CodexMessageDelta(thread_id="t", item_id="m", delta="x")
    whole = ItemEndedNotice(thread_id="t", item=AgentMessageItem(id="m", text="x"))
    assert read_notices(lines) == [piece, None, whole, None, piece, None, None, piece]
