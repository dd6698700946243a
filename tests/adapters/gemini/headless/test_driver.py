"""Runs on a script that replaces Gemini: its output, its files and its exit."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest
import trio

from sessionmgr.adapter import CapabilityMissing
from sessionmgr.manager import Clocks, Manager, RunHandle, open_manager
from sessionmgr.manager.run_plan import RunRequest
from sessionmgr.model import (
    AnyEvent,
    FailureKind,
    Fidelity,
    Json,
    MessageReceived,
    PermissionMode,
    ProcessExited,
    RetryScheduled,
    RunResult,
    RunStarted,
)
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter, driver, start_gate

PNG: Final = b"\x89PNG\r\n\x1a\n"
SAY: Final = """say() { printf "%s\\n" "$1"; }
for each; do case $each in
    --session-id=*) id=${each#*=};;
    --resume=*) id=${each#*=}; resumed=yes;;
    --admin-policy=*) cat "${each#*=}" > policy;;
esac; done
"""
READ: Final = "cat > prompt"
BEGIN: Final = READ + """; printf '{"type":"init","session_id":"%s","model":"m"}\\n' "$id" """
ANSWER: Final = 'say \'{"type":"message","role":"assistant","content":"Well."}\''
DONE: Final = 'say \'{"type":"result","status":"success"}\''
NOTICE: Final = 'say \'{"type":"error","severity":"error","message":"Maximum session turns"}\''
ENOUGH: Final = 30.0
"""Seconds in which a script ends on any machine."""


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncGenerator[Manager]:
    adapters = {"gemini": GeminiHeadlessAdapter}
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    async with open_manager(
        adapters=adapters, environ=environ, clocks=Clocks(close=1.0)
    ) as manager:
        yield manager


async def started(manager: Manager, place: Path, *script: str, **wishes: Json) -> RunHandle:
    """Start a run on a program that is this script."""
    program = place / "gemini"
    program.write_text("\n".join([SAY, *script]))
    mode = PermissionMode(str(wishes.pop("mode", "default")))
    session = await manager.open_session("gemini", cwd=place, permission_mode=mode)
    output = wishes.pop("output", "stream-json")
    options: dict[str, Json] = {"command": ["/bin/sh", str(program)], "output": output}
    return await session.submit("héllo", options=options, **wishes)  # type: ignore[arg-type]


async def played(
    manager: Manager, place: Path, *script: str, **wishes: Json
) -> tuple[RunResult, list[AnyEvent]]:
    run = await started(manager, place, *script, **wishes)
    result = await run.result()
    return result, [each async for each in run]


async def test_a_prompt_is_written_to_it_and_its_answer_told(
    manager: Manager, tmp_path: Path
) -> None:
    result, events = await played(manager, tmp_path, BEGIN, ANSWER, DONE)
    assert (result.status, result.text, result.exit_code) == ("completed", "Well.", 0)
    assert (tmp_path / "prompt").read_text() == "héllo"
    [begun] = [each for each in events if isinstance(each, RunStarted)]
    assert begun.model == "m"
    assert result.provider_session_id == begun.provider_session_id
    assert result.permission is not None
    assert result.permission.fidelity is Fidelity.NARROWER
    assert "exit_plan_mode" in (tmp_path / "policy").read_text()
    [exited] = [each for each in events if isinstance(each, ProcessExited)]
    assert exited.emptied


async def test_the_widest_mode_needs_no_policy(manager: Manager, tmp_path: Path) -> None:
    await played(manager, tmp_path, BEGIN, ANSWER, DONE, mode="full_auto")
    assert not (tmp_path / "policy").exists()


@pytest.mark.parametrize("code", [0, 1, 130])
async def test_one_that_reports_no_result_has_failed_whatever_its_exit_code(
    manager: Manager, tmp_path: Path, code: int
) -> None:
    script = (BEGIN, ANSWER, "echo 'Ripgrep is not available.' >&2", f"exit {code}")
    result, events = await played(manager, tmp_path, *script)
    assert result.failure is not None
    told = (result.failure.kind, result.failure.retryable, result.failure.resumable)
    assert told == (FailureKind.PROCESS_EXITED, True, True)
    assert result.failure.message == f"Gemini ended without a result (exit code {code})"
    assert [each.content for each in events if isinstance(each, MessageReceived)] == ["Well."]


async def test_an_error_before_a_successful_result_is_the_failure(
    manager: Manager, tmp_path: Path
) -> None:
    result, _ = await played(manager, tmp_path, BEGIN, NOTICE, DONE)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.BUDGET_EXCEEDED


async def test_one_that_has_reported_its_result_and_stays_is_ended(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "EXIT_WAIT", 0.2)
    failed = 'say \'{"type":"result","status":"error","error":{"message":"no"}}\''
    for end, kind in ((DONE, None), (failed, FailureKind.PROVIDER_ERROR)):
        result, _ = await played(manager, tmp_path, BEGIN, ANSWER, end, "sleep 1000")
        assert (result.failure and result.failure.kind) == kind


async def test_one_that_does_not_apply_its_policy_is_stopped(
    manager: Manager, tmp_path: Path
) -> None:
    script = (READ, "echo '[ADMIN] Policy file error in policy.toml:' >&2", "sleep 1000")
    result, _ = await played(manager, tmp_path, *script)
    assert result.failure is not None
    assert (result.failure.kind, result.failure.phase) == (FailureKind.PERMISSION_REFUSED, "start")


async def test_retries_are_reported(manager: Manager, tmp_path: Path) -> None:
    retry = "echo 'Attempt 1 failed: rate. Retrying after 5ms...' >&2"
    _, events = await played(manager, tmp_path, BEGIN, retry, ANSWER, DONE)
    [event] = [each for each in events if isinstance(each, RetryScheduled)]
    assert (event.attempt, event.delay) == (2, 0.005)


async def test_images_are_in_a_directory_of_the_run(manager: Manager, tmp_path: Path) -> None:
    (tmp_path / "a b.dat").write_bytes(PNG)
    look = (
        'for each in $(sed -n "s/^@//p" prompt); do cat "$each" > seen; echo "$each" > name; done'
    )
    result, _ = await played(manager, tmp_path, BEGIN, look, ANSWER, DONE, images=["a b.dat"])
    assert result.status == "completed"
    assert (tmp_path / "seen").read_bytes() == PNG
    name = Path((tmp_path / "name").read_text().strip())
    assert name.name == "image0.png"
    assert not name.parent.exists()


async def test_what_cannot_be_begun_is_refused(manager: Manager, tmp_path: Path) -> None:
    (tmp_path / "fake.png").write_text("no picture")
    result, _ = await played(manager, tmp_path, BEGIN, images=["fake.png"])
    assert result.failure is not None
    assert result.failure.kind is FailureKind.CONFIG_INVALID
    session = await manager.open_session("gemini", cwd=tmp_path)
    missing: dict[str, Json] = {"command": ["no-such-gemini"]}
    result = await (await session.submit("hi", options=missing)).result()
    assert result.failure is not None
    assert result.failure.kind is FailureKind.CLI_NOT_FOUND
    assert not (tmp_path / "prompt").exists()


async def test_policies_of_the_machine_refuse_a_run_that_needs_its_own(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "machine.toml").touch()
    monkeypatch.setattr(GeminiHeadlessAdapter, "admin_policies", tmp_path)
    result, _ = await played(manager, tmp_path, BEGIN, ANSWER, DONE, mode="plan")
    assert result.failure is not None
    assert result.failure.kind is FailureKind.PERMISSION_REFUSED
    assert str(tmp_path) in result.failure.message
    result, _ = await played(manager, tmp_path, BEGIN, ANSWER, DONE, mode="full_auto")
    assert result.status == "completed"


# --- sessions ------------------------------------------------------------------------------------

UNKNOWN: Final = """[ -z "$resumed" ] || {
    echo 'Error resuming session: No previous sessions found for this project.' >&2; exit 42;
}"""


async def test_a_session_without_an_answer_is_begun_anew(manager: Manager, tmp_path: Path) -> None:
    chats = tmp_path / "home" / ".gemini" / "tmp" / "work" / "chats"
    chats.mkdir(parents=True)
    script = (UNKNOWN, BEGIN, ANSWER, DONE)
    first, _ = await played(manager, tmp_path, *script)
    options: dict[str, Json] = {"command": ["/bin/sh", str(tmp_path / "gemini")]}
    session = await manager.session(first.session_id)
    named = f'{{"sessionId":"{first.provider_session_id}"}}\n'
    file = chats / f"session-x-{(first.provider_session_id or '')[:8]}.jsonl"
    for text in ("", '{"sessionId":"another"}', named + '{"type":"gemini","content":"Well."}'):
        file.write_text(text)
        lost = await (await session.submit("more", options=options)).result()
        assert lost.failure is not None
        assert lost.failure.kind is FailureKind.SESSION_NOT_FOUND, text
    file.write_text(named)
    again = await (await session.submit("more", options=options)).result()
    assert again.status == "completed"
    assert again.provider_session_id != first.provider_session_id


async def test_a_session_serves_one_run_at_a_time(manager: Manager, tmp_path: Path) -> None:
    run = await started(manager, tmp_path, BEGIN, ANSWER, "sleep 1000")
    named = None
    async for event in run:
        if isinstance(event, RunStarted):
            named = event.provider_session_id
            break
    other = await manager.open_session("gemini", cwd=tmp_path)
    refused = await (
        await other.admit(RunRequest(prompt="me too", provider_session_id=named))
    ).result()
    assert refused.failure is not None
    assert refused.failure.kind is FailureKind.SESSION_BUSY
    run.cancel()
    assert (await run.result()).status == "cancelled"


async def test_processes_of_a_directory_start_one_after_the_other(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_gate, "HOLD", ENOUGH)
    monkeypatch.setattr(start_gate, "WAIT", ENOUGH)
    alone = "[ ! -e starting ] || exit 9; touch starting; sleep 0.2; rm starting"
    script = (READ, alone, BEGIN, ANSWER, "sleep 0.5", DONE)
    before = trio.current_time()
    runs = [await started(manager, tmp_path, *script) for _ in range(3)]
    results = [await each.result() for each in runs]
    assert [each.status for each in results] == ["completed"] * 3
    assert trio.current_time() - before < ENOUGH


@pytest.mark.parametrize("limit", ["HOLD", "WAIT"])
async def test_a_process_that_is_slow_to_start_holds_up_no_other_for_long(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(start_gate, limit, 0.1)
    script = ("mkdir first && sleep 1000", BEGIN, ANSWER, DONE)
    slow = await started(manager, tmp_path, *script)
    while not (tmp_path / "first").exists():  # noqa: ASYNC110  # what a child does has no event
        await trio.sleep(0.01)
    result, _ = await played(manager, tmp_path, *script)
    assert result.status == "completed"
    slow.cancel()
    assert (await slow.result()).status == "cancelled"


# --- plain text ----------------------------------------------------------------------------------


async def test_plain_text_is_told_line_by_line(manager: Manager, tmp_path: Path) -> None:
    result, events = await played(
        manager, tmp_path, READ, "echo 'One.'; echo; echo 'Two.'", output="text"
    )
    assert (result.status, result.text) == ("completed", "One.\n\nTwo.")
    [begun] = [each for each in events if isinstance(each, RunStarted)]
    assert begun.provider_session_id == result.provider_session_id is not None
    with pytest.raises(CapabilityMissing, match="tool_use"):
        await played(manager, tmp_path, READ, output="text", require=["tool_use"])


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("exit 0", FailureKind.PROVIDER_ERROR),
        ("echo half; echo '[ERROR] Model stream ended' >&2", FailureKind.PROVIDER_ERROR),
        ("echo half; echo '[ERROR] The quota is used up' >&2; exit 1", FailureKind.QUOTA_EXHAUSTED),
        ("echo half; exit 7", FailureKind.PROCESS_EXITED),
        ("echo 'No previous sessions found' >&2; exit 42", FailureKind.SESSION_NOT_FOUND),
    ],
)
async def test_plain_text_without_a_good_end_is_a_failure(
    manager: Manager, tmp_path: Path, script: str, kind: FailureKind
) -> None:
    result, _ = await played(manager, tmp_path, READ, script, output="text")
    assert result.failure is not None
    assert result.failure.kind is kind
