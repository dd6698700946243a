"""Files that an agent reads and writes through its client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Approve, Decision, Deny
from sessionmgr_adapters.acp import client_files
from sessionmgr_adapters.acp.frames import AgentRequest, ReadFileRequest, WriteFileRequest
from sessionmgr_adapters.acp.updates import ToolCallNews, ToolLocation
from tests.adapters.acp.mock_agent import (
    Talk,
    chosen,
    chunk,
    ended,
    opening,
    permission,
    session_of,
)
from tests.adapters.acp.mocked_manager import play


async def served(
    work: Path, *requests: AgentRequest, mode: str = "full_auto", approve: Approve | None = None
) -> list[Any]:
    """Return the answers to requests: the result, or the code and the message."""
    answers: list[Any] = []

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(chunk(session, "x"))
        for each in requests:
            it.says(each)
            reply: Any = await it.heard()
            is_refused = reply.code is not None
            answers.append((reply.code, reply.message) if is_refused else reply.result)
        it.says(ended())

    played = await play(script, mode=mode, approve=approve, cwd=work)
    assert played.result.status == "completed", played.result.failure
    return answers


def read(path: Path | str, line: int | None = None, limit: int | None = None) -> ReadFileRequest:
    return ReadFileRequest(name="r", path=str(path), line=line, limit=limit)


def write(path: Path | str, text: str = "new") -> WriteFileRequest:
    return WriteFileRequest(name="w", path=str(path), content=text)


async def test_a_file_is_read_whole_or_by_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\nthree\n")
    answers = await served(
        tmp_path,
        read(file),
        read(file, line=2),
        read(file, line=2, limit=1),
        read(file, limit=1),
        read(file, line=9),
    )
    texts = [each["content"] for each in answers]
    assert texts == ["one\ntwo\nthree\n", "two\nthree\n", "two\n", "one\n", ""]


async def test_what_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "MAX_FILE_BYTES", 100)
    (tmp_path / "big").write_bytes(b"x" * 101)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    answers = await served(
        tmp_path,
        read(tmp_path / "missing"),
        read(tmp_path / "big"),
        read(tmp_path / "binary"),
        read(tmp_path),
        read("relative"),
        read("/etc/hostname"),
    )
    assert [code for code, _ in answers] == [-32002, -32602, -32602, -32602, -32602, -32001]
    assert "larger than 100 bytes" in answers[1][1]


async def test_a_file_is_written_in_a_mode_that_allows_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "out.txt"
    assert await served(tmp_path, write(file), mode="accept_edits") == [{}]
    assert file.read_text() == "new"


async def test_without_permission_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    [(code, _)] = await served(tmp_path, write(file), mode="default")
    assert code == -32001
    assert not file.exists()


async def test_the_caller_is_asked_about_a_file_that_the_agent_did_not_ask_about(
    tmp_path: Path,
) -> None:
    seen: list[ApprovalRequest] = []

    async def approve(question: ApprovalRequest) -> Decision:
        seen.append(question)
        return Allow()

    file = tmp_path / "out.txt"
    assert await served(tmp_path, write(file), mode="default", approve=approve) == [{}]
    assert (seen[0].effect, seen[0].paths) == ("edit", (str(file),))


async def test_a_protected_file_is_no_plain_edit(tmp_path: Path) -> None:
    [(code, _)] = await served(tmp_path, write(tmp_path / ".envrc"), mode="accept_edits")
    assert code == -32001


@pytest.mark.parametrize("mode", ["accept_edits", "full_auto"])
async def test_nothing_outside_of_the_directories_is_written(tmp_path: Path, mode: str) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (work / "link").symlink_to(outside)
    answers = await served(
        work,
        write(outside / "a"),
        write(work / "link" / "b"),
        write(work / ".." / "outside" / "c"),
        mode=mode,
    )
    assert [code for code, _ in answers] == [-32001] * 3
    assert list(outside.iterdir()) == []


async def test_what_cannot_be_written_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "MAX_FILE_BYTES", 100)
    answers = await served(tmp_path, write(tmp_path), write(tmp_path / "long", "x" * 101))
    assert [code for code, _ in answers] == [-32602, -32602]


async def test_a_pipe_is_refused_and_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with trio.fail_after(10):
        answers = await served(tmp_path, read(tmp_path / "pipe"), write(tmp_path / "pipe"))
    assert [code for code, _ in answers] == [-32602, -32602]


async def test_a_link_that_replaces_a_file_while_it_is_decided_is_not_followed(
    tmp_path: Path,
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()

    async def approve(_: ApprovalRequest) -> Decision:
        (work / "a").symlink_to(outside)
        return Allow()

    [(code, _)] = await served(work, write(work / "a"), mode="default", approve=approve)
    assert code == -32001
    assert not outside.exists()


async def test_a_shorter_text_replaces_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("longer than before")
    file.chmod(0o755)
    assert await served(tmp_path, write(file, "short")) == [{}]
    assert file.read_text() == "short"
    assert file.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("kind", ["read", "execute", "fetch"])
async def test_a_call_that_only_reads_does_not_grant_a_write(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "out.txt"
    codes: list[int | None] = []

    async def approve(question: ApprovalRequest) -> Decision:
        return Deny() if question.tool_name == "write_text_file" else Allow()

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        call = ToolCallNews(
            tool_call_id="c", title="Look", kind=kind, raw_input={"path": str(file)}
        )
        it.says(permission(session, call=call))
        assert chosen(await it.heard()) == "yes"
        it.says(write(file))
        reply: Any = await it.heard()
        codes.append(reply.code)
        it.says(ended())

    await play(script, approve=approve, cwd=tmp_path)
    assert codes == [-32001]
    assert not file.exists()


@pytest.mark.parametrize("named", ["out.txt", "{file}"])
async def test_a_call_that_was_allowed_writes_its_file_without_a_second_question(
    tmp_path: Path, named: str
) -> None:
    file = tmp_path / "out.txt"
    path = named.format(file=file)
    asked: list[str] = []

    async def approve(question: ApprovalRequest) -> Decision:
        asked.append(question.tool_name)
        return Allow()

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        call = ToolCallNews(
            tool_call_id="c",
            title="Write",
            kind="edit",
            raw_input={"path": path, "content": "a\nb"},
            locations=(ToolLocation(path=path),),
        )
        it.says(permission(session, call=call))
        assert chosen(await it.heard()) == "yes"
        for text in ("first", "second"):
            it.says(write(file, text))
            await it.heard()
        it.says(ended())

    await play(script, approve=approve, cwd=tmp_path)
    assert asked == ["Write", "write_text_file"]  # a grant serves once
    assert file.read_text() == "second"
