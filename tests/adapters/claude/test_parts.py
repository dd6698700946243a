"""The parts that do not wait: command lines, versions, failures, pictures, functions, letters."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from sessionmgr.errors import ResumeIdRefused
from sessionmgr.manager import open_manager
from sessionmgr.model import (
    Failure,
    FailureKind,
    Json,
    Permission,
    PermissionMode,
    RunStatus,
    encode_json,
)
from sessionmgr.model.permission import Fidelity
from sessionmgr.process import Command, build_environment, open_launcher
from sessionmgr.process.environment import NESTING
from sessionmgr.provider import Allow, Budget, Deny, RunContext, RunSpec
from sessionmgr.provider.course import Course
from sessionmgr.provider.intake import Intake
from sessionmgr_adapters.claude import ClaudeAdapter, ClaudeOptions, ClaudeTool
from sessionmgr_adapters.claude.failures import complaint_kind, failure_of
from sessionmgr_adapters.claude.frames import Ask, Assistant, Message, Result, read
from sessionmgr_adapters.claude.functions import Functions
from sessionmgr_adapters.claude.launch import ENVIRONMENT, ClaudeSpec, make_spec
from sessionmgr_adapters.claude.letters import Letters
from sessionmgr_adapters.claude.normalise import normalise
from sessionmgr_adapters.claude.orders import HostReply, Request, Say, encode
from sessionmgr_adapters.claude.pictures import (
    LARGEST,
    MOST,
    Gallery,
    ImageRefusedError,
    blocks_of,
    media_type_of,
)
from sessionmgr_adapters.claude.questions import approval_request
from sessionmgr_adapters.claude.sdk import verdict
from sessionmgr_adapters.claude.seat import numbers, too_old, too_wide
from sessionmgr_adapters.claude.spending import Spending
from sessionmgr_adapters.claude.state import State
from sessionmgr_adapters.claude.version import version_of
from tests.provider.no_launcher import NoLauncher

PNG = b"\x89PNG\r\n\x1a\n and more"


async def add(given: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    return [*given]


def context(**fields: object) -> RunContext:
    course = Course(
        run_id="run", session_id="ses", provider="claude", intake=Intake[object](), grace=1.0
    )
    permission = Permission(
        asked=PermissionMode.DEFAULT, effective="default", fidelity=Fidelity.EXACT
    )
    known: dict[str, object] = {
        "prompt": "hi",
        "cwd": "/",
        "env": {"A": "b"},
        "permission": permission,
        "options": ClaudeOptions(),
    }
    return RunContext(course, RunSpec(**{**known, **fields}), NoLauncher())  # type: ignore[arg-type]


def spec(options: ClaudeOptions | None = None, **fields: object) -> ClaudeSpec:
    return make_spec(context(**fields), options or ClaudeOptions(), "new-session")


def flags(made: ClaudeSpec) -> set[str]:
    return set(made.argv({flag: f"/files{flag}" for flag, _ in made.files})[1:])


def test_a_new_session_has_the_name_that_we_give_it() -> None:
    made = spec()
    assert "--session-id=new-session" in flags(made)
    assert not any(each.startswith(("--resume", "--fork")) for each in flags(made))


def test_a_session_is_gone_on_with_or_forked() -> None:
    assert "--resume=old" in flags(spec(provider_session_id="old"))
    assert "--session-id=new-session" not in flags(spec(provider_session_id="old"))
    forked = flags(spec(ClaudeOptions(fork=True), provider_session_id="old"))
    assert {"--resume=old", "--fork-session", "--session-id=new-session"} <= forked
    with pytest.raises(ResumeIdRefused):
        spec(provider_session_id="--dangerously-skip-permissions")


def test_each_wish_is_on_the_command_line() -> None:
    made = spec(
        ClaudeOptions(
            fallback_model="haiku",
            settings="{}",
            setting_sources=(),
            strict_mcp=True,
            debug_file="/log",
            allow_rules=("Bash(ls *)",),
            partial_messages=False,
        ),
        model="opus",
        effort="low",
        tools_allowed=("Read",),
        tools_denied=("Write",),
        directories=("/other",),
        max_turns=3,
        budget=Budget(usd=1.5),
        schema={"type": "object"},
    )
    assert {
        "--model=opus",
        "--effort=low",
        "--tools=Read",
        "--add-dir=/other",
        "--max-turns=3",
        "--max-budget-usd=1.5",
        '--json-schema={"type":"object"}',
        "--fallback-model=haiku",
        "--settings={}",
        "--setting-sources=",
        "--strict-mcp-config",
        "--debug-file=/log",
        "--allowedTools=Bash(ls *)",
    } <= flags(made)
    assert "--include-partial-messages" not in flags(made)


def test_what_asks_or_schedules_elsewhere_is_denied_and_questions_where_nobody_answers() -> None:
    def denied(**fields: object) -> set[str]:
        (found,) = [
            each for each in flags(spec(None, **fields)) if each.startswith("--disallowedTools")
        ]
        return set(found.partition("=")[2].split(","))

    assert {"CronCreate", "RemoteTrigger", "AskUserQuestion"} <= denied()
    assert "AskUserQuestion" not in denied(attended=True)
    assert "Bash(rm *)" in denied(tools_denied=("Bash(rm *)",))


def test_what_is_long_or_private_goes_by_file() -> None:
    made = spec(
        ClaudeOptions(
            append_system_prompt="more",
            mcp_servers={"x": {"command": "y"}},
            agents={"a": {"description": "d", "prompt": "p"}},
            tools=(ClaudeTool("add", "", add),),
        ),
        system_prompt="secret",
    )
    assert "secret" not in str(flags(made))
    assert [flag for flag, _ in made.files] == [
        "--system-prompt-file",
        "--append-system-prompt-file",
        "--mcp-config",
        "--agents",
    ]
    assert '"sessionmgr":{"type":"sdk"' in dict(made.files)["--mcp-config"]


def test_the_environment_is_what_the_run_says_and_what_we_need() -> None:
    env = spec(ClaudeOptions(home="/home/of/it", background=False)).command.env
    assert env["A"] == "b"
    assert env["CLAUDE_CONFIG_DIR"] == "/home/of/it"
    assert env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "200000"
    given = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "50000"}
    assert spec(env=given).command.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "50000"
    assert "IS_SANDBOX" not in env


def test_its_variables_pass_and_marks_of_other_agents_do_not() -> None:
    source = {"ANTHROPIC_API_KEY": "k", "AWS_PROFILE": "p", "OTHER": "x", "PATH": "/bin"}
    marked = {**source, **dict.fromkeys(NESTING, "1")}
    assert build_environment(marked, ENVIRONMENT) == {"ANTHROPIC_API_KEY": "k", "PATH": "/bin"}
    cloud = build_environment({**source, "CLAUDE_CODE_USE_BEDROCK": "1"}, ENVIRONMENT)
    assert cloud["AWS_PROFILE"] == "p"


def test_a_child_serves_what_it_can_be_changed_to() -> None:
    one = spec(model="opus")
    bypass = Permission(
        asked=PermissionMode.FULL_AUTO, effective="bypassPermissions", fidelity=Fidelity.EXACT
    )
    assert one.serves(spec(model="haiku", effort="low"))
    assert not one.serves(spec(system_prompt="x"))
    assert not one.serves(spec(max_turns=3))
    assert not one.serves(spec(permission=bypass))
    assert not spec(permission=bypass).serves(one)
    assert spec(permission=bypass).serves(spec(permission=bypass, model="haiku"))
    assert not one.serves(spec(ClaudeOptions(fork=True), provider_session_id="old"))


def test_versions_are_compared_by_their_numbers() -> None:
    assert numbers("2.1.327 (Claude Code)") == (2, 1, 327)
    assert numbers(None) is None
    assert too_old("2.1.197") is None
    assert too_old("2.10.0") is None
    for old in ("2.1.196", "1.9.999", ""):
        failure = too_old(old)
        assert failure is not None
        assert "2.1.197" in failure.message


def test_a_mode_that_nobody_knows_is_as_wide_as_any() -> None:
    assert too_wide("default", "plan") is None
    assert too_wide("default", None) is None
    assert too_wide("bypassPermissions", "default") is None
    for wide in ("acceptEdits", "auto", "bypassPermissions", "new"):
        assert too_wide("default", wide) is not None
    assert too_wide("plan", "default") is not None


async def test_a_program_is_asked_for_its_version_where_it_does_not_say(tmp_path: Path) -> None:
    program = tmp_path / "old"
    program.write_text("#!/bin/sh\necho 2.1.150 '(Claude Code)'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    like = Command(argv=("x",), cwd=str(tmp_path), env={"PATH": "/usr/bin:/bin"})
    async with open_launcher() as launcher:
        assert await version_of(launcher, (str(program),), like) == "2.1.150 (Claude Code)"
        assert await version_of(launcher, ("/bin/sh", "-c", "exit 3"), like) == ""


def failed(**fields: object) -> Failure:
    said = {name: fields.pop(name) for name in ("error", "params") if name in fields}
    error = Assistant(
        message=Message(content=""),
        error=said.get("error"),  # type: ignore[arg-type]
        api_error_params=said.get("params"),  # type: ignore[arg-type]
    )
    failure = failure_of(Result(subtype="success", is_error=True, **fields), error)  # type: ignore[arg-type]
    assert failure is not None
    return failure


def test_a_quota_without_an_end_is_no_rate_limit() -> None:
    spent = {"error": "rate_limit", "api_error": "usage_limit_reached"}
    assert failed(**spent).kind is FailureKind.QUOTA_EXHAUSTED
    limit: Json = {"rate_limit_info": {"resetsAt": 0}}
    limited = failed(**spent, params=limit)
    assert (limited.kind, limited.retry_at) == (
        FailureKind.RATE_LIMITED,
        "1970-01-01T00:00:00.000Z",
    )


def test_an_error_without_a_status_is_worth_another_try() -> None:
    assert failed(error="unknown", api_error="connection_failed").retryable
    assert failed(error="server_error").retryable
    assert not failed(error="unknown", api_error_status=400).retryable
    assert failed(api_error_status=402).kind is FailureKind.BILLING
    assert failed(terminal_reason="blocking_limit").kind is FailureKind.CONTEXT_EXCEEDED
    assert failed(result=None, terminal_reason="hook_stopped").message.endswith("hook_stopped")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Error: Session ID x is already in use.", FailureKind.SESSION_BUSY),
        ("cannot be used with root/sudo privileges", FailureKind.PERMISSION_REFUSED),
        ("error: unknown option '--x'", FailureKind.CONFIG_INVALID),
        ("Segmentation fault", None),
    ],
)
def test_last_words_say_why_a_start_came_to_nothing(words: str, kind: FailureKind | None) -> None:
    assert complaint_kind(words) is kind


def test_letters_are_settled_by_name_or_once_they_were_taken() -> None:
    letters = Letters()
    seen: list[bool] = []

    def look() -> None:
        seen.append(letters.are_open)

    letters.send("prompt", alone=True)
    letters.send("more")
    letters.settle(["prompt"])
    look()
    letters.live("more", "queued")
    letters.settle(None)
    look()  # it was not taken yet
    letters.echo("more")
    letters.settle(None)
    look()
    letters.live("more", "started")
    letters.live("unknown", "started")
    look()
    assert seen == [True, True, False, False]


async def test_tools_are_served_as_by_a_server() -> None:
    functions = Functions((ClaudeTool("add", "Add.", add),))
    hello = await functions.serve({"id": 0, "method": "initialize"})
    assert "protocolVersion" in str(hello["result"])
    assert (await functions.serve({"id": 1, "method": "ping"}))["result"] == {}
    assert "Add." in str(await functions.serve({"id": 2, "method": "tools/list"}))
    call: Json = {"id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}}
    assert '["a"]' in str(await functions.serve(call))
    none: Json = {"id": 4, "method": "tools/call", "params": {"name": "none"}}
    assert "there is no tool 'none'" in str(await functions.serve(none))
    assert "no method" in str(await functions.serve({"id": 5, "method": "x"}))
    assert (await functions.serve({"method": "notifications/initialized"}))["result"] == {}
    assert "error" in await functions.serve("no message")


async def test_images_are_told_by_what_is_in_them(tmp_path: Path) -> None:
    assert media_type_of(PNG) == "image/png"
    assert media_type_of(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert media_type_of(b"GIF89a") == "image/gif"
    assert media_type_of(b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
    assert media_type_of(b"<svg>") is None
    (tmp_path / "a").write_bytes(PNG)
    blocks = await blocks_of("look", ["a"], str(tmp_path))
    assert base64.b64encode(PNG).decode() in str(blocks)
    assert await blocks_of("look", [], str(tmp_path)) == "look"
    with (tmp_path / "large").open("wb") as file:
        file.write(PNG)
        file.truncate(LARGEST + 1)
    with (tmp_path / "big").open("wb") as file:
        file.write(PNG)
        file.truncate(LARGEST)
    for paths, why in (
        (["large"], "more than 20 MB"),
        (["big"] * 3, "in all"),
        (["a"] * (MOST + 1), "is the most"),
        (["none"], "cannot be read"),
    ):
        with pytest.raises(ImageRefusedError, match=why):
            await blocks_of("look", paths, str(tmp_path))


def image(data: str) -> Json:
    source: Json = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


def test_images_that_tools_show_are_taken_out_once() -> None:
    gallery = Gallery()
    shown = base64.b64encode(PNG).decode()
    found = gallery.hang([image(shown), image(shown), {"type": "text", "text": "x"}, image("???")])
    (picture,) = gallery.fresh
    assert picture.data == PNG
    assert str(found).count(picture.sha256) == 2
    assert shown not in str(found)
    assert gallery.hang("text") == "text"
    many: list[Json] = [image(base64.b64encode(PNG + bytes([n])).decode()) for n in range(20)]
    gallery.hang(many)
    assert len(gallery.fresh) == 10


def test_paths_are_seen_from_the_directories_that_they_are_in(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "away").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "work")
    (tmp_path / "work" / "out").symlink_to(tmp_path / "away")
    directories = [str(tmp_path / "link")]

    def paths(path: str) -> tuple[str, ...]:
        ask = Ask(subtype="can_use_tool", tool_name="Write", input={"file_path": path})
        return approval_request(ask, directories).paths

    assert paths(str(tmp_path / "work" / "x")) == (str(tmp_path / "link" / "x"),)
    assert paths(str(tmp_path / "link" / "out" / "x")) == (str(tmp_path / "away" / "x"),)
    assert approval_request(Ask(subtype="can_use_tool", tool_name="New"), []).effect == "other"


def test_decisions_are_put_in_its_words() -> None:
    assert verdict(Allow()) == {"behavior": "allow"}
    assert verdict(Allow(tool_input={"a": 1}))["updatedInput"] == {"a": 1}
    assert verdict(Deny(reason="no")) == {"behavior": "deny", "message": "no"}
    assert verdict(Deny(stop=True))["interrupt"] is True


def test_orders_are_lines_of_json() -> None:
    assert encode(Say(content="/x", uuid="u", priority="now")) == (
        b'{"type":"user","message":{"role":"user","content":"/x"},"uuid":"u",'
        b'"priority":"now","client_composed":true}\n'
    )
    assert b"client_composed" not in encode(Say(content="/x", uuid="u", is_text=False))
    assert encode(Request(id="1", subtype="interrupt", fields={"cancel_queued": True})) == (
        b'{"type":"control_request","request_id":"1",'
        b'"request":{"subtype":"interrupt","cancel_queued":true}}\n'
    )
    assert b'"error":"no"' in encode(HostReply(id="1", error="no"))
    assert b'"response":{"a":1}' in encode(HostReply(id="1", response={"a": 1}))


USAGE: Json = {"m": {"inputTokens": 30, "outputTokens": 6, "costUSD": 0.3}}


def result(**more: Json) -> Result:
    (found,) = read([encode_result({"modelUsage": USAGE, "total_cost_usd": 0.3, **more})])
    assert isinstance(found, Result)
    return found


def encode_result(fields: dict[str, Json]) -> bytes:
    return encode_json({"type": "result", "session_id": "s", **fields})


def test_what_an_older_one_says_is_read_like_a_meter() -> None:
    spending = Spending()
    first = spending.book(result())
    assert first is not None
    assert (first.usage.input, first.cost) == (30, 0.3)
    assert spending.book(result()) is None


def test_of_a_session_gone_on_with_only_what_is_new_is_booked() -> None:
    turn: Json = {"input_tokens": 10, "output_tokens": 2}
    spending = Spending(resumed=True)
    first = spending.book(result(usage=turn))
    assert first is not None
    assert (first.usage.input, first.usage.output, first.cost) == (10, 2, None)
    more: Json = {"m": {"inputTokens": 40, "outputTokens": 8, "costUSD": 0.4}}
    second = spending.book(result(modelUsage=more, total_cost_usd=0.4))
    assert second is not None
    assert second.usage.input == 10
    assert second.cost == pytest.approx(0.1)
    assert Spending(resumed=True).book(result()) is None


def lines(*said: str) -> list[str]:
    state = State()
    frames = read([each.encode() for each in said])
    return [event.type for frame in frames for event in normalise(frame, state)]


def test_what_it_says_of_itself_becomes_events() -> None:
    assert lines(
        '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":5}}'
    ) == ["run_started", "rate_limit_updated"]
    assert lines('{"type":"system","subtype":"api_retry","attempt":1,"error_status":529}') == [
        "run_started",
        "retry_scheduled",
    ]
    assert lines('{"type":"system","subtype":"model_fallback","trigger":"overloaded"}') == [
        "run_started",
        "error_occurred",
        "session_stats_updated",
    ]
    assert lines(
        '{"type":"system","subtype":"init","session_id":"a"}',
        '{"type":"system","subtype":"init","session_id":"b"}',
        '{"type":"conversation_reset","new_conversation_id":"c"}',
    ) == ["run_started", "provider_session_updated", "provider_session_updated"]
    assert lines(
        '{"type":"system","subtype":"status","status":"compacting"}',
        '{"type":"system","subtype":"status","status":null,"compact_result":"failed"}',
    ) == ["run_started", "compaction_started", "compaction_failed"]
    assert lines(
        '{"type":"stream_event","event":{"type":"message_stop"},"abandoned_blocks":{}}',
        '{"type":"keep_alive"}',
    ) == ["run_started", "retry_scheduled"]
    assert lines('{"type":"system","subtype":"task_updated","patch":{"status":"killed"}}') == []


def test_blocks_of_messages_become_events() -> None:
    search = '{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'
    found = '{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}'
    hidden = '{"type":"redacted_thinking","data":"x"},{"type":"document","source":{}}'
    empty = '{"type":"text","text":""},{"type":"thinking","thinking":""}'
    content = f'[{search},{found},{hidden},{empty},{{"type":"thinking","thinking":"hm"}}]'
    assert lines(f'{{"type":"assistant","message":{{"id":"m","content":{content}}}}}') == [
        "run_started",
        "tool_call_started",
        "tool_call_completed",
        "reasoning_received",
    ]
    call = '{"type":"tool_use","id":"t1","name":"Bash"}'
    twice = f'{{"type":"assistant","message":{{"content":[{call},{call}]}}}}'
    assert lines(twice) == ["run_started", "tool_call_started"]
    unknown = '{"type":"assistant","message":{"content":[{"type":"hologram"}]}}'
    assert lines(unknown) == ["raw_received"]
    denied = '{"type":"system","subtype":"permission_denied","tool_name":"B","tool_use_id":"t"}'
    assert lines(denied, denied) == [
        "run_started",
        "tool_approval_requested",
        "tool_approval_denied",
    ]


async def test_it_says_whether_its_program_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    health = await ClaudeAdapter().health()
    assert (health.state, "on PATH" in health.detail) == ("skip", True)
    program = tmp_path / "claude"
    program.touch(0o755)
    assert (await ClaudeAdapter().health()).state == "ok"


PLAIN = """#!/bin/sh
case "$*" in *stream-json*) exit 9;; esac
read -r prompt
echo "heard: $prompt"
case "$prompt" in
  fail*) echo "Error: Session ID x is already in use." >&2; exit 1;;
  wait*) sleep 1000;;
esac
"""


async def test_plain_text_is_a_run_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(PLAIN)
    program.chmod(0o755)
    options = ClaudeOptions(command=(str(program),), text=True)
    async with open_manager(adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        run = await session.submit("hi", options=options, system_prompt="short")
        done = await run.result()
        assert (done.status, done.text, done.exit_code) == (RunStatus.COMPLETED, "heard: hi", 0)
        failed = await (await session.submit("fail", options=options)).result()
        assert failed.failure is not None
        assert (failed.failure.kind, failed.text) == (FailureKind.SESSION_BUSY, "heard: fail")
        run = await session.submit("wait", options=options)
        async for event in run:
            if event.type == "message_streamed":
                run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        edits = await manager.open_session("claude", cwd=tmp_path, permission_mode="accept_edits")
        for refused in (
            await session.submit("/x", options=options),
            await session.submit("x", options=options, schema={}),
            await edits.submit("x", options=options),
        ):
            failure = (await refused.result()).failure
            assert failure is not None
            assert failure.kind is FailureKind.CONFIG_INVALID
