"""Very many jobs: the ledger holds the ended ones, not the memory."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from sessionmgr import Job, open_manager, run_batch
from sessionmgr.batch import JobsInvalid
from sessionmgr.testing.scripted_provider import scripted


def jobs(number: int) -> Iterator[Job]:
    for n in range(number):
        yield Job(id=f"job-{n}", provider="actor", prompt="hi")


async def test_ended_jobs_take_no_memory(tmp_path: Path) -> None:
    actor = scripted("actor")
    async with open_manager(store=tmp_path / "store.db", adapters={"actor": actor}) as manager:

        async def held_after(number: int) -> int:
            """Run some jobs; return the number of remaining objects of the project.

            Trio's own objects vary: its heap keeps up to a thousand cancel scopes.
            """
            out = tmp_path / str(number)
            async with run_batch(manager, jobs(number), concurrency=32, out=out) as batch:
                assert (await batch.wait()).all_completed
            actor.log.clear()
            gc.collect()
            return sum(type(each).__module__[:10] == "sessionmgr" for each in gc.get_objects())

        await held_after(100)
        few = await held_after(200)
        many = await held_after(700)
    assert many - few < 250  # one object for every second job would exceed this
    assert len((tmp_path / "700" / "results.jsonl").read_bytes().splitlines()) == 700


async def test_a_long_file_is_read_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    with path.open("w") as file:
        for n in range(5_000):
            file.write(json.dumps({"id": f"{n:0>40}", "provider": "actor", "prompt": "x" * 8000}))
            file.write("\n")
    size = path.stat().st_size
    async with open_manager(adapters={"actor": scripted("actor")}) as manager:
        before = _resident()
        batch = run_batch(manager, path, limit=1)
        async with batch as results:
            assert [result.job async for result in results] == [f"{0:0>40}"]
        grown = _resident() - before
    assert batch.summary().jobs == 5_000
    assert grown < size / 2


def _resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


async def test_others_have_their_turn_while_jobs_are_read(tmp_path: Path) -> None:
    async with open_manager(adapters={"actor": scripted("actor")}) as manager:
        batch = run_batch(manager, jobs(5_000), limit=0)
        seen: list[int] = []

        async def watch() -> None:
            while batch.progress().total is None:
                seen.append(batch.progress().waiting)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            async with batch:
                pass
    assert len(set(seen)) > 10
    assert seen == sorted(seen)


async def test_some_problems_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_text(
        "".join(f'{{"id": "{number}", "model": {number}}}\n' for number in range(1_000))
    )
    async with open_manager() as manager:
        with pytest.raises(JobsInvalid, match="and 975 more") as refused:
            async with run_batch(manager, path):
                await trio.sleep_forever()
    assert refused.value.problems[2] == f"{path}:3: model: expected a string, got 2 (a number)"
