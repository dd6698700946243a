"""Runs on a script that replaces `codex exec`: its output, its answer file and its exit."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from sessionmgr.adapter import CapabilityMissing, OptionInvalid
from sessionmgr.adapter.kit.images import MAX_IMAGE_BYTES
from sessionmgr.manager import Clocks, Manager, RunHandle, open_manager
from sessionmgr.model import (
    AnyEvent,
    ErrorOccurred,
    FailureKind,
    Fidelity,
    Json,
    PermissionMode,
    ProcessExited,
    RunResult,
    RunStarted,
)
from sessionmgr_adapters.codex import CodexAdapter, CodexOptions
from sessionmgr_adapters.codex.exec import driver

PNG = b"\x89PNG\r\n\x1a\n"
BEGIN = 'cat > prompt; say \'{"type":"thread.started","thread_id":"t-1"}\''
ITEM = r'{"id":"i","type":"agent_message","text":"{\"n\":1}"}'
ANSWER = f'say \'{{"type":"item.completed","item":{ITEM}}}\''
DONE = 'say \'{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":1}}\''
LEAVE = """leave() {
    for each; do case $each in --output-last-message=*) cat > "${each#*=}";; esac; done
}"""
ENOUGH = 30.0
"""Seconds in which a script ends on any machine."""
SAY = 'say() { printf "%s\\n" "$1"; }'


@pytest.fixture
async def manager() -> AsyncGenerator[Manager]:
    adapters = {"codex": CodexAdapter}
    async with open_manager(adapters=adapters, clocks=Clocks(close=1.0)) as manager:
        yield manager


async def started(manager: Manager, place: Path, *script: str, **wishes: Json) -> RunHandle:
    """Start a run on a program that is this script."""
    program = place / "codex"
    program.write_text("\n".join([SAY, LEAVE, *script]))
    mode = PermissionMode(str(wishes.pop("mode", "default")))
    session = await manager.open_session("codex", cwd=place, permission_mode=mode)
    options: dict[str, Json] = {"command": ["/bin/sh", str(program)], "exec": True}
    for name in CodexOptions.__struct_fields__:
        if name in wishes:
            options[name] = wishes.pop(name)
    return await session.submit("héllo", options=options, **wishes)  # type: ignore[arg-type]


async def played(
    manager: Manager, place: Path, *script: str, **wishes: Json
) -> tuple[RunResult, list[AnyEvent]]:
    run = await started(manager, place, *script, **wishes)
    result = await run.result()
    return result, [each async for each in run]


async def test_a_prompt_is_written_to_it_and_its_answer_told(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "EXIT_WAIT", ENOUGH)  # it exits by itself
    result, events = await played(manager, tmp_path, BEGIN, ANSWER, DONE)
    assert (result.status, result.text, result.exit_code) == ("completed", '{"n":1}', 0)
    assert (tmp_path / "prompt").read_text() == "héllo"
    assert result.provider_session_id == "t-1"
    assert result.usage.input == 10
    assert result.permission is not None
    assert result.permission.fidelity is Fidelity.NARROWER  # there are no questions
    assert result.permission.effective == "never, workspace-write"
    assert any(isinstance(each, ProcessExited) for each in events)


async def test_what_is_wished_stands_on_its_command_line(manager: Manager, tmp_path: Path) -> None:
    script = ('printf "%s\\n" "$@" > argv', BEGIN, 'say \'{"type":"turn.started"}\'', ANSWER, DONE)
    wishes = {"model": "m", "effort": "low", "system_prompt": "Be kind.", "mode": "full_auto"}
    result, _ = await played(manager, tmp_path, *script, **wishes)
    assert result.permission is not None
    assert result.permission.fidelity is Fidelity.EXACT
    argv = (tmp_path / "argv").read_text().splitlines()
    assert {'model="m"', 'model_reasoning_effort="low"', "--sandbox=workspace-write"} <= {*argv}
    assert 'developer_instructions="Be kind."' in argv
    assert "sandbox_workspace_write.network_access=false" in argv
    session = await manager.session(result.session_id)
    options: dict[str, Json] = {"command": ["/bin/sh", str(tmp_path / "codex")], "exec": True}
    again = await (await session.submit("more", options=options)).result()
    assert again.status == "completed"
    assert (tmp_path / "argv").read_text().splitlines()[-2:] == ["t-1", "-"]


async def test_a_turn_that_fails_is_a_run_that_fails(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "EXIT_WAIT", ENOUGH)
    said = '{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan"}}'
    result, _ = await played(manager, tmp_path, BEGIN, f"say '{said}'", "exit 1")
    assert result.failure is not None
    assert (result.failure.kind, result.exit_code) == (FailureKind.QUOTA_EXHAUSTED, 1)


async def test_an_answer_whose_frame_is_lost_is_read_where_it_was_left(
    manager: Manager, tmp_path: Path
) -> None:
    result, _ = await played(manager, tmp_path, BEGIN, 'echo "In a file." | leave "$@"', DONE)
    assert (result.status, result.text) == ("completed", "In a file.\n")


async def test_one_that_has_said_its_last_and_stays_is_ended(
    manager: Manager, tmp_path: Path
) -> None:
    script = (BEGIN, ANSWER, DONE, "trap 'exit 0' INT", "while :; do sleep 0.1; done")
    result, _ = await played(manager, tmp_path, *script)
    assert (result.status, result.text) == ("completed", '{"n":1}')


async def test_one_that_goes_without_a_word_has_failed(manager: Manager, tmp_path: Path) -> None:
    result, _ = await played(
        manager, tmp_path, BEGIN, "echo /home/joe/.codex/auth.json is broken >&2; exit 0"
    )
    assert result.failure is not None
    told = (result.failure.kind, result.failure.retryable, result.failure.resumable)
    assert told == (FailureKind.PROCESS_EXITED, True, True)
    assert result.failure.message.endswith("auth.json is broken")
    assert result.failure.stderr_tail == "auth.json is broken"


async def test_an_error_that_no_end_of_a_turn_followed_is_what_it_failed_with(
    manager: Manager, tmp_path: Path
) -> None:
    error = 'say \'{"type":"error","message":"unexpected status 401 Unauthorized: no"}\''
    result, _ = await played(manager, tmp_path, BEGIN, error, "exit 1")
    assert result.failure is not None
    assert result.failure.kind is FailureKind.AUTH_FAILED


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Error: no rollout found for thread id x (code -32600)", FailureKind.SESSION_NOT_FOUND),
        ("Error loading config.toml: unknown variant", FailureKind.CONFIG_INVALID),
    ],
)
async def test_a_start_that_comes_to_nothing_says_why(
    manager: Manager, tmp_path: Path, said: str, kind: FailureKind
) -> None:
    result, _ = await played(manager, tmp_path, f"echo '{said}' >&2", "exit 1")
    assert result.failure is not None
    assert (result.failure.kind, result.failure.phase) == (kind, "start")
    assert "code" not in result.failure.message


async def test_a_prompt_that_is_refused_is_no_turn_that_failed(
    manager: Manager, tmp_path: Path
) -> None:
    words = "Input exceeds the maximum length of 1048576 characters."
    script = (BEGIN, f"echo 'Error: turn/start: turn/start failed: {words}' >&2", "exit 1")
    result, events = await played(manager, tmp_path, *script, model="m")
    failure = result.failure
    assert failure is not None
    assert (failure.kind, failure.phase) == (FailureKind.CONFIG_INVALID, "start")
    assert (failure.retryable, failure.resumable) == (False, False)
    assert failure.message == f"turn/start failed: {words}"
    [begun] = [each for each in events if isinstance(each, RunStarted)]
    assert begun.model == "m"


async def test_an_image_may_have_any_name(manager: Manager, tmp_path: Path) -> None:
    (tmp_path / "a,b.png").write_bytes(PNG)
    look = 'for each; do case $each in --image=*) cat "${each#*=}" > seen;; esac; done'
    result, _ = await played(manager, tmp_path, look, BEGIN, ANSWER, DONE, images=["a,b.png"])
    assert result.status == "completed"
    assert (tmp_path / "seen").read_bytes() == PNG


async def test_a_home_that_is_half_made_is_tried_again(manager: Manager, tmp_path: Path) -> None:
    lost = "echo 'Error: failed to initialize sqlite state runtime' >&2; exit 1"
    script = (f"[ -e tried ] || {{ touch tried; {lost}; }}", BEGIN, ANSWER, DONE)
    result, events = await played(manager, tmp_path, *script)
    assert result.status == "completed"
    [note] = [each for each in events if isinstance(each, ErrorOccurred)]
    assert (note.severity, note.failure.kind) == ("warning", FailureKind.START_FAILED)


async def test_a_home_that_is_never_made_is_not_tried_for_ever(
    manager: Manager, tmp_path: Path
) -> None:
    lost = "echo 'Error: failed to initialize sqlite state runtime' >&2"
    result, events = await played(manager, tmp_path, lost, "exit 1")
    assert result.failure is not None
    assert (result.failure.kind, result.failure.retryable) == (FailureKind.PROCESS_EXITED, True)
    assert len([each for each in events if isinstance(each, ErrorOccurred)]) == 4


async def test_output_that_is_not_by_its_schema_is_a_failure(
    manager: Manager, tmp_path: Path
) -> None:
    script = (BEGIN, ANSWER, DONE)
    result, _ = await played(manager, tmp_path, *script, schema={"type": "object"})
    assert (result.status, result.structured) == ("completed", {"n": 1})
    result, _ = await played(manager, tmp_path, *script, schema={"type": "string"})
    assert result.failure is not None
    assert result.failure.kind is FailureKind.STRUCTURED_INVALID
    result, _ = await played(manager, tmp_path, BEGIN, DONE, schema={"type": "object"})
    assert result.failure is not None
    assert result.failure.kind is FailureKind.STRUCTURED_INVALID


@pytest.mark.parametrize("need", ["steer", "streaming", "tool_approval"])
async def test_what_it_cannot_do_is_missing_before_anything_is_started(
    manager: Manager, tmp_path: Path, need: str
) -> None:
    with pytest.raises(CapabilityMissing, match=need):
        await started(manager, tmp_path, BEGIN, require=[need])
    assert not (tmp_path / "prompt").exists()
    assert (await manager.negotiate("codex", require=[need])).missing == ()
    result, _ = await played(manager, tmp_path, BEGIN, ANSWER, DONE, prefer=[need])
    assert result.negotiation is not None
    assert [each.name for each in result.negotiation.degraded] == [need]


async def test_a_message_at_once_is_no_option_of_it(manager: Manager, tmp_path: Path) -> None:
    with pytest.raises(OptionInvalid, match="follow_up"):
        await started(manager, tmp_path, BEGIN, follow_up="now")
    with pytest.raises(ValueError, match="accepts no messages"):
        CodexOptions(exec=True, follow_up="now")


async def test_what_cannot_be_begun_is_refused(manager: Manager, tmp_path: Path) -> None:
    (tmp_path / "fake.png").write_text("no picture")
    (tmp_path / "large.png").write_bytes(PNG + bytes(MAX_IMAGE_BYTES))
    refused: dict[str, tuple[dict[str, Json], str]] = {
        "nowhere": ({"images": ["nowhere.png"]}, f"{tmp_path}/nowhere.png cannot be read: "),
        "fake": ({"images": ["fake.png"]}, "fake.png is not a PNG, JPEG, GIF or WebP image"),
        "large": ({"images": ["large.png"]}, f"{tmp_path}/large.png is larger than 20 MB"),
        "home": ({"home": "none"}, "options.home: no such directory: none"),
    }
    for wishes, words in refused.values():
        result, _ = await played(manager, tmp_path, BEGIN, **wishes)
        assert result.failure is not None
        assert result.failure.kind is FailureKind.CONFIG_INVALID
        assert result.failure.message.startswith(words)
    result, _ = await played(manager, tmp_path, BEGIN, schema={"type": 7})
    assert result.failure is not None
    assert result.failure.message.startswith("schema: ")
    assert not (tmp_path / "prompt").exists()


@pytest.mark.parametrize("obeys", [True, False])
async def test_a_cancel_is_over_soon_whether_it_obeys_or_not(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, obeys: bool
) -> None:
    # A process that obeys gets enough time, one that does not gets little; the run waits for both.
    monkeypatch.setattr(driver, "INTERRUPT_GRACE", ENOUGH if obeys else 0.5)
    monkeypatch.setattr(driver, "TERM", 0.5)
    trap = "trap 'exit 1' INT" if obeys else "trap '' INT TERM"
    forever = "while :; do sleep 0.05; done"
    script = (trap, BEGIN, f"(setsid sh -c '{forever}' &)", forever)
    clocks = Clocks(close=2 * ENOUGH)
    run = await started(manager, tmp_path, *script, clocks=clocks)  # type: ignore[arg-type]
    async for event in run:
        if event.type == "run_started":
            break
    before = trio.current_time()
    assert run.cancel("enough")
    result = await run.result()
    assert result.status == "cancelled"
    assert trio.current_time() - before < ENOUGH
    [exited] = [each async for each in run if isinstance(each, ProcessExited)]
    assert exited.emptied
    assert exited.exit_code == (1 if obeys else None)
