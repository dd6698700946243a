"""Files of attempts beside their results, and the activity that is shown while they run."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from sessionmgr import run_batch
from sessionmgr.batch import LedgerUnusable, ResultsUnwritable, attempt_dir, tool_label
from sessionmgr.batch.activity import ActivityTracker
from sessionmgr.batch.attempt_dir import directory_name
from sessionmgr.model import (
    AnyEvent,
    ImageReceived,
    Json,
    MessageStreamed,
    OutputReceived,
    ProcessExited,
    ReasoningStreamed,
    RunCompleted,
    RunStarted,
    RunStatus,
    TokenUsageUpdated,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallStarted,
    Usage,
)
from sessionmgr.testing.scripted_provider import Emit, Say
from tests.batch.open_batch import collect, job, open_batch_setup

NAME = sha256(b"an image").hexdigest()
IMAGE = Emit(
    event=ImageReceived(media_type="image/png", blob=NAME, bytes=8),
    blobs=(b"an image",),
)


async def test_stderr_images_and_running_processes_are_stored(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup() as setup:
        steps = (
            Emit(event=OutputReceived(stream="stderr", text="oh ")),
            Emit(event=OutputReceived(stream="stdout", text="not this")),
            Emit(event=OutputReceived(stream="stderr", text="no\n")),
            IMAGE,
            Emit(event=ImageReceived(media_type="image/png", blob="0" * 64, bytes=8)),
            Emit(event=ProcessExited(exit_code=0, left_running=("daemon (12)",))),
        )
        await collect(run_batch(setup.manager, [job("a/b", *steps), job("none")], out=tmp_path))
    (attempt_dir,) = (tmp_path / "items").iterdir()
    found = {each.name: each.read_bytes() for each in (attempt_dir / "attempt-1").iterdir()}
    assert found == {
        "stderr": b"oh no\n",
        "left_running": b"daemon (12)\n",
        f"{NAME}.png": b"an image",
    }


@pytest.mark.parametrize("link", ["a", "a/attempt-1", "a/attempt-1/stderr"])
async def test_nothing_is_kept_by_way_of_a_link(
    autojump_clock: object, tmp_path: Path, link: str
) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = out / "items" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere / "stderr" if link.endswith("stderr") else elsewhere)
    async with open_batch_setup() as setup:
        shown = job("a", Emit(event=OutputReceived(stream="stderr", text="oh no\n")))
        (result,) = await collect(run_batch(setup.manager, [shown], out=out))
    assert result.status == RunStatus.COMPLETED
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["lock", "ledger.db", "ledger.db-wal", "items"])
async def test_a_directory_with_links_in_it_is_no_batchs(
    autojump_clock: object, tmp_path: Path, name: str
) -> None:
    _, theirs = link_to_theirs(tmp_path, name)
    async with open_batch_setup() as setup:
        with pytest.raises(LedgerUnusable, match=f"{name} is a symbolic link to {theirs}"):
            await collect(run_batch(setup.manager, [job("a")], out=tmp_path / "out"))
    assert theirs.read_text() == "precious"


@pytest.mark.parametrize("name", ["results.jsonl", "summary.json"])
async def test_a_link_in_the_place_of_results_is_replaced(
    autojump_clock: object, tmp_path: Path, name: str
) -> None:
    link, theirs = link_to_theirs(tmp_path, name)
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path / "out"))
    assert theirs.read_text() == "precious"
    assert link.is_file()
    assert not link.is_symlink()


async def test_results_are_not_written_by_way_of_a_link(
    autojump_clock: object, tmp_path: Path
) -> None:
    _, theirs = link_to_theirs(tmp_path, "results.jsonl.part")
    async with open_batch_setup() as setup:
        with pytest.raises(ResultsUnwritable):
            await collect(run_batch(setup.manager, [job("a")], out=tmp_path / "out"))
    assert theirs.read_text() == "precious"


def link_to_theirs(tmp_path: Path, name: str) -> tuple[Path, Path]:
    """Make a batch's directory that contains a link to a file of the user."""
    theirs, link = tmp_path / "theirs", tmp_path / "out" / name
    theirs.write_text("precious")
    link.parent.mkdir()
    link.symlink_to(theirs)
    return link, theirs


async def test_a_place_that_cannot_be_costs_no_job(
    autojump_clock: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "items").write_text("in the way")
    async with open_batch_setup() as setup:
        texts = job("a", Emit(event=OutputReceived(stream="stderr", text="oh no")), Say(text="x"))
        shows = job("b", IMAGE)
        results = await collect(run_batch(setup.manager, [texts, shows], out=tmp_path))
    assert {each.status for each in results} == {RunStatus.COMPLETED}
    assert caplog.text.count("The files of an attempt are no longer stored.") == 2


@pytest.mark.parametrize(
    ("id", "expected"),
    [("job-1.a_b", "job-1.a_b"), ("a/b", "a_b~"), ("..", "~"), (".x", "x~"), ("é", "_~")],
)
def test_a_directory_is_called_like_its_job(id: str, expected: str) -> None:
    name = directory_name(id)
    assert name == expected or (expected.endswith("~") and name.startswith(expected))
    assert "/" not in name


async def test_a_disk_that_hangs_costs_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(attempt_dir, "PATIENCE", 0.2)
    kept = attempt_dir.AttemptDirectory(str(tmp_path / "pipe" / "job" / "attempt-1"))
    place = tmp_path / "pipe" / "job" / "attempt-1"
    place.mkdir(parents=True)
    os.mkfifo(place / "stderr")  # opening it blocks without a reader
    async with kept:
        for text in ("oh no", "and more"):
            await kept.record_events([OutputReceived(stream="stderr", text=text)])
    assert caplog.text.count("The files of an attempt are no longer stored.") == 1
    assert "the disk did not respond for 0.2 s" in caplog.text
    with (place / "stderr").open("rb") as pipe:  # release the thread
        assert pipe.read() == b"oh no"


def test_long_ids_have_names_of_their_own() -> None:
    names = {directory_name("x" * 300 + end) for end in "ab"}
    assert len(names) == 2
    assert all(len(name) < 120 for name in names)


@pytest.mark.parametrize(
    ("name", "tool_input", "expected"),
    [
        ("Bash", {"command": "npm test"}, "Bash: npm test"),
        ("Bash", {"timeout": 3, "command": "a\n  b"}, "Bash: a b"),
        ("Read", {"file_path": "/a", "limit": 3}, "Read: /a"),
        ("Odd", {"n": 3, "what": "this"}, "Odd: this"),
        ("List", {"command": ["git", "log"]}, "List: git log"),
        (
            "apply_patch",
            {"changes": [{"path": "a.py", "kind": {"type": "add"}, "diff": "x"}, {"path": "b.py"}]},
            "apply_patch: a.py b.py",
        ),
        ("None", None, "None"),
        ("Numbers", {"n": 3}, "Numbers"),
        ("Text", "hello", "Text: hello"),
        ("Long", "x" * 200, f"Long: {'x' * 79}…"),
    ],
)
def test_a_tool_is_shown_with_the_most_informative_part_of_its_input(
    name: str, tool_input: Json, expected: str
) -> None:
    assert tool_label(name, tool_input) == expected


def test_the_activity_of_a_job_follows_from_its_events() -> None:
    doing = ActivityTracker(0.0)
    shown = [(doing.text, doing.since)]
    events: list[AnyEvent] = [
        RunStarted(),
        ReasoningStreamed(delta="x"),
        MessageStreamed(delta="x"),
        ToolCallStarted(tool_call_id="1", tool_name="Bash", tool_input="ls"),
        ToolApprovalRequested(approval_id="1", tool_name="Bash"),
        ToolApprovalGranted(approval_id="1", tool_name="Bash"),
        ToolCallCompleted(tool_call_id="1", tool_name="Bash"),
        TokenUsageUpdated(usage=Usage(input=3, output=4), cost=0.5),
        RunCompleted(),
    ]
    for now, event in enumerate(events, 1):
        doing.update([event], now)
        shown.append((doing.text, doing.since))
    assert shown == [
        ("starting", 0),
        ("thinking", 1),
        ("thinking", 1),
        ("writing", 3),
        ("Bash: ls", 4),
        ("waiting for approval", 5),
        ("Bash: ls", 6),
        ("thinking", 7),
        ("thinking", 7),
        ("stopping", 9),
    ]
    assert (doing.tokens, doing.usd) == (7, 0.5)
