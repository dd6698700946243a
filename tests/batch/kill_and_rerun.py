"""Program that kills a batch at random moments, reruns it each time, and checks the outcome.

`python -m tests.batch.kill_and_rerun --times 50` prints one JSON object of figures, and exits with
1 if a law is broken: every job has one line in `results.jsonl` and has completed; no job completed
twice; no recorded tool call was repeated; no attempt is left open; a result that exists after a
kill exists after the next; and the store's own laws hold.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import trio

from sessionmgr import Job, open_manager, run_batch
from sessionmgr.batch import Batch
from sessionmgr.store import open_sqlite_store
from sessionmgr.testing.invariants import broken_laws
from sessionmgr.testing.scripted_provider import Say, Script, Step, Tool, Use, Wait, write_script
from tests.batch.child_adapters import Actor

AT_ONCE = 8
PATIENCE = 120
READY = b"ready\n"
CUT = "job-0"
"""The job that the first kill interrupts in its tool call, however slow the machine is."""
IN_TOOL = b"in its tool\n"


def write_jobs(path: Path, number: int, chance: random.Random) -> None:
    """Write the jobs: each writes text, works for a while, calls a tool, and writes more.

    The tool call of `CUT` ends with its process.
    """
    lines: list[bytes] = []
    for n in range(number):
        steps: tuple[Step, ...] = (
            Say(text=f"begun {n}"),
            Wait(seconds=chance.choice([0, 0.02, 0.1, 0.4])),
            Tool(name="push", takes=chance.choice([0, 0.02, 0.1, 0.4])),
            Use(input=1, output=1),
            Say(text=f"done {n}"),
        )
        id = f"job-{n}"
        if id == CUT:
            steps = (Tool(name="push", takes=3600),)
        job = {"id": id, "provider": "actor", "prompt": write_script(Script(steps=steps))}
        lines.append(json.dumps(job).encode() + b"\n")
    path.write_bytes(b"".join(lines))


async def work(place: Path) -> None:
    """Run the batch to its end, unless the process is killed."""
    async with open_manager(store=place / "store.db", adapters={"actor": Actor}) as manager:
        defaults = Job(id="-", cwd=str(place))
        batch = run_batch(
            manager,
            place / "jobs.jsonl",
            out=place / "out",
            concurrency=AT_ONCE,
            retries=0,
            defaults=defaults,
        )
        async with batch, trio.open_nursery() as nursery:
            write_line(READY)
            nursery.start_soon(tell_in_tool, batch)
            await batch.wait()
            nursery.cancel_scope.cancel()


def write_line(line: bytes) -> None:
    """Write a line to the parent process."""
    sys.stdout.buffer.write(line)
    sys.stdout.flush()


async def tell_in_tool(batch: Batch) -> None:
    """Report when `CUT` is in its recorded tool call."""
    await trio.lowlevel.checkpoint()
    # No event reports this.
    while (CUT, "push") not in {(each.job, each.doing) for each in batch.progress().jobs}:  # noqa: ASYNC110
        await trio.sleep(0.02)
    write_line(IN_TOOL)


def run_process(place: Path, chance: random.Random | None, *, in_tool: bool = False) -> bool:
    """Run one process for a while, or to its end; return whether it became ready.

    `in_tool`: kill it while `CUT` is in its tool call.
    """
    command = [sys.executable, "-m", "tests.batch.kill_and_rerun", "--work", str(place)]
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)]),
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        if chance is None:
            said = process.stdout.read()
            if process.wait(PATIENCE):
                raise SystemExit("the last run went wrong")
            return bool(said)
        was_ready = False
        if in_tool:
            was_ready = IN_TOOL in process.stdout  # the process reads no further
        elif chance.random() < 0.2:  # before it has started anything
            time.sleep(chance.uniform(0.0, 1.0))
        else:
            was_ready = bool(process.stdout.readline())
            time.sleep(chance.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    return was_ready


async def check_results(place: Path, jobs: int) -> tuple[dict[str, int], list[str]]:
    """Return the figures, and the broken laws."""
    lines = (place / "out" / "results.jsonl").read_bytes().splitlines()
    results = [json.loads(line) for line in lines]
    names = Counter(result["job"] for result in results)
    broken = [f"{name} has {count} results" for name, count in names.items() if count != 1]
    broken += [f"job-{n} has no result" for n in range(jobs) if f"job-{n}" not in names]
    broken += [
        f"{each['job']} is {each['status']}" for each in results if each["status"] != "completed"
    ]
    async with open_sqlite_store(place / "store.db") as store:
        broken += [str(each) for each in await broken_laws(store)]
        completed, pushed = Counter[str](), Counter[str]()
        runs, resumed, interrupted, cursor = 0, 0, 0, None
        while True:
            page = await store.runs(limit=1000, cursor=cursor)
            for row in page.rows:
                runs += 1
                record = json.loads(row.body)
                resumed += record["resumed_from"] is not None
                if row.status not in ("completed", "failed"):
                    broken.append(f"{row.run_id} is {row.status}")
                interrupted += bool(record["open_tools"])
                session = json.loads((await store.session(row.session_id)).body)
                job = session["metadata"]["job"]
                pushed[job] += record["tool_calls"]["count"].get("push", 0)
                completed[job] += row.status == "completed"
            cursor = page.cursor
            if cursor is None:
                break
    broken += [f"{job} was completed {n} times" for job, n in completed.items() if n != 1]
    broken += [f"{job} has called its tool {n} times" for job, n in pushed.items() if n > 1]
    figures = {
        "jobs": jobs,
        "results": len(lines),
        "runs": runs,
        "resumed": resumed,
        "interrupted_in_a_tool": interrupted,
    }
    return figures, broken


def kill_and_rerun(times: int, seed: int) -> tuple[dict[str, int], list[str]]:
    """Kill a batch a number of times, let it end, and return figures and broken laws."""
    chance = random.Random(seed)
    jobs = 12 * times
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_jobs(place / "jobs.jsonl", jobs, chance)
        ready, lost, before = 0, list[str](), set[bytes]()
        for number in range(times):
            ready += run_process(place, chance, in_tool=number == 0)
            lines = whole_lines(place)
            lost += [f"a result was lost: {line[:200]!r}" for line in before - lines]
            before = lines
        run_process(place, None)
        lost += [f"a result was lost: {line[:200]!r}" for line in before - whole_lines(place)]
        figures, broken = trio.run(check_results, place, jobs)
    return {"kills": times, "kills_at_work": ready, **figures}, lost + broken


def whole_lines(place: Path) -> set[bytes]:
    """Return the results in the file; a killed writer may leave the last one incomplete."""
    path = place / "out" / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return {line for line in lines if line.endswith(b"\n")}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path)
    args = parser.parse_args()
    if args.work is not None:
        trio.run(work, args.work)
        return 0
    figures, broken = kill_and_rerun(args.times, args.seed)
    print(json.dumps({**figures, "broken": broken}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
