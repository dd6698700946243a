"""`results.jsonl` has one line per job, and many replacements do not rewrite it each time."""

import fcntl
import json
from pathlib import Path

import pytest

from sessionmgr import run_batch
from sessionmgr.batch import BatchBusy, JobsInvalid, OutDirectoryUnusable, results
from sessionmgr.batch.batch_dir import BatchDirectory
from sessionmgr.batch.results import ResultsFile
from tests.batch.open_batch import collect, job, open_batch_setup


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_a_line_that_replaces_another_takes_its_place_at_once(tmp_path: Path) -> None:
    kept = [b"a1", b"b1"]
    file = ResultsFile(tmp_path / "results.jsonl", lambda: kept)
    kept[:] = [b"b1", b"a2", b"c1"]
    file.add([b"a2", b"c1"], replaced=1)
    assert lines_of(tmp_path / "results.jsonl") == kept
    kept.append(b"d1")
    file.add([b"d1"])
    assert lines_of(tmp_path / "results.jsonl") == kept
    file.close()


def test_a_long_file_is_written_anew_when_much_of_it_is_old_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FEW", 3)
    monkeypatch.setattr(results, "MANY", 4)
    kept = [b"%d" % n for n in range(12)]
    path = tmp_path / "results.jsonl"
    file = ResultsFile(path, lambda: kept)
    lengths: list[int] = []
    for n in range(6):
        new = b"new %d" % n
        kept[:] = [each for each in kept if each != b"%d" % n] + [new]
        file.add([new], replaced=1)
        lengths.append(len(lines_of(path)))
    assert lengths == [13, 14, 15, 12, 13, 14]
    file.complete()
    assert lines_of(path) == kept
    file.complete()
    file.close()
    assert lines_of(path) == kept


async def test_results_that_stand_in_no_ledger_are_not_written_over(
    autojump_clock: object, tmp_path: Path
) -> None:
    results = tmp_path / "results.jsonl"
    async with open_batch_setup() as setup:
        await collect(run_batch(setup.manager, [job("a")], out=tmp_path))
        before = results.read_bytes()
        (tmp_path / "ledger.db").unlink()
        with pytest.raises(
            OutDirectoryUnusable, match=r"contains results\.jsonl .* but no ledger\.db"
        ):
            await collect(run_batch(setup.manager, [job("b")], out=tmp_path))
        assert results.read_bytes() == before
        results.rename(tmp_path / "old.jsonl")
        await collect(run_batch(setup.manager, [job("b")], out=tmp_path))
        assert json.loads(results.read_bytes())["job"] == "b"


async def test_a_batch_that_did_not_start_is_removed_while_locked(
    autojump_clock: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vanish, busy = BatchDirectory.discard, list[str]()

    def watched(place: BatchDirectory) -> None:
        with pytest.raises(BatchBusy) as refused:
            BatchDirectory(place.path)
        busy.append(str(refused.value))
        vanish(place)

    monkeypatch.setattr(BatchDirectory, "discard", watched)
    async with open_batch_setup() as setup:
        with pytest.raises(JobsInvalid):
            await collect(run_batch(setup.manager, [job("a"), job("a")], out=tmp_path / "out"))
    assert len(busy) == 1
    assert not (tmp_path / "out").exists()


def test_a_directory_that_vanishes_while_it_is_taken_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, flock = BatchDirectory(tmp_path / "out"), fcntl.flock

    def late(lock: int, how: int) -> None:
        monkeypatch.undo()
        first.discard()
        first.close()
        flock(lock, how)

    monkeypatch.setattr(fcntl, "flock", late)
    second = BatchDirectory(tmp_path / "out")
    with pytest.raises(BatchBusy):
        BatchDirectory(tmp_path / "out")
    second.close()
