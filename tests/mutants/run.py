"""Show that each mutant is noticed: `python -m tests.mutants.run [name ...]`.

Each mutant gets a copy of the package and of the tests of otp, and these run there until the
first that fails. Those of the manager are for the simulation to find, within 200 seeds. The sources
as they are go first, and must pass. The exit code is 1 if a mutant survives or cannot be made.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import trio

from tests.mutants.mutant import HERE, Mutant, copy_package, mutants

TESTS = HERE.parent
FAILED = re.compile(r"^(?:FAILED|ERROR) (?:tests/otp/)?(\S+)", re.MULTILINE)
SURVIVED = "SURVIVED"
SEEDS = 200
LOOK_EVERY = 1.0
LEAST = 0.02
"""Seconds of CPU between two looks that count as work."""
IDLE = 60.0
"""Seconds without work after which a command is taken to hang."""
SLOWEST = 20
"""How many seconds a second of CPU takes at most: for what does a little now and then."""
FOUND = re.compile(r"--(seed \d+) .*\n\s*(.*)")


class MutantVerdict(NamedTuple):
    """What became of a mutant."""

    name: str
    killer: str
    seconds: float
    is_right: bool


async def judge(
    mutant: Mutant | None, patience: float, *, simulated: bool = False
) -> MutantVerdict:
    """Run the tests, or simulations, against `mutant`, or against the sources as they are."""
    name = f"(none{', simulated' if simulated else ''})" if mutant is None else mutant.name
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        root = Path(directory)
        copy_package(root)
        if not simulated:
            copy_tests(root)
        complaint = "" if mutant is None else mutant.apply(root)
        if complaint:
            return MutantVerdict(name, f"does not apply: {complaint}", 0.0, is_right=False)
        began = time.monotonic()
        if simulated:
            code, said = await run_simulations(root, patience)
        else:
            code, said = await run_tests(root, [] if mutant is None else mutant.first, patience)
        seconds = time.monotonic() - began
    failed = (FOUND if simulated else FAILED).search(said)
    if code == 0:
        return MutantVerdict(name, SURVIVED, seconds, is_right=mutant is None)
    if failed is not None:
        killer = ": ".join(failed.groups())[:100]
    else:
        killer = "no end in time" if code is None else said.strip()[-300:]
    is_found = failed is not None or not simulated
    return MutantVerdict(name, killer, seconds, is_right=mutant is not None and is_found)


def copy_tests(root: Path) -> None:
    """Put the tests of otp, and how pytest is set up, below `root`."""
    ignored = shutil.ignore_patterns("__pycache__")
    (root / "tests").mkdir()
    for path in [TESTS / "__init__.py", TESTS / "conftest.py", TESTS.parent / "pyproject.toml"]:
        shutil.copy(path, root / path.relative_to(TESTS.parent))
    shutil.copytree(TESTS / "otp", root / "tests" / "otp", ignore=ignored)


async def run_simulations(root: Path, patience: float) -> tuple[int | None, str]:
    """Give the exit code of simulations, None if they took too long, and what they printed."""
    command = [sys.executable, "-m", "tests.simulation", "--first", "--lines", "1"]
    return await run([*command, "--seeds", f"0:{SEEDS}"], root, patience)


async def run_tests(root: Path, first: Sequence[str], patience: float) -> tuple[int | None, str]:
    """Give the exit code of pytest, None if it took too long, and what it printed."""
    files = [f"tests/otp/{name}.py" for name in first]
    chosen = [file for file in files if (root / file).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-o", "faulthandler_timeout=0", "--hypothesis-seed=1"]
    return await run([*command, *chosen, "tests/otp"], root, patience)


async def run(
    command: Sequence[str], root: Path, patience: float, path: str | None = None
) -> tuple[int | None, str]:
    """Run a command on what is below `root`, or is found on `path`.

    Its exit code is None if it took more than `patience` seconds of CPU, or none at all for long:
    how much time that takes on a machine with other work says nothing about the command.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(root) if path is None else path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(root / "hypothesis"),
    }
    said = root / "said"
    with said.open("wb") as out:
        process = await trio.lowlevel.open_process(
            command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        try:
            await _wait_for_end(process, patience)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
    code = None if process.returncode == -signal.SIGKILL else process.returncode
    return code, said.read_text(encoding="utf-8", errors="replace")


async def _wait_for_end(process: trio.Process, patience: float) -> None:
    """Wait until a process has ended, has worked for too long, or has not worked for long."""
    used, since = 0.0, trio.current_time()
    until = since + SLOWEST * patience
    while process.poll() is None and trio.current_time() < until:
        with trio.move_on_after(LOOK_EVERY):
            await process.wait()
        now = cpu_seconds(process.pid)
        if now - used >= LEAST:
            used, since = now, trio.current_time()
        if used > patience or trio.current_time() - since > IDLE:
            return


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process and its ended children have used; 0 if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return 0.0
    return sum(map(int, stat.rpartition(") ")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def table(verdicts: Sequence[MutantVerdict]) -> str:
    """Write one line for each mutant."""
    width = max(len(verdict.name) for verdict in verdicts)
    return "\n".join(
        f"{'ok' if each.is_right else 'NO'}  {each.name:{width}} {each.seconds:6.1f} s  "
        + each.killer
        for each in verdicts
    )


async def judge_all(chosen: Sequence[Mutant], at_once: int, patience: float) -> list[MutantVerdict]:
    """Judge the sources as they are, then all mutants, `at_once` at a time."""
    verdicts: list[MutantVerdict] = []
    for simulated in sorted({mutant.is_simulated for mutant in chosen}):
        verdicts.append(await judge(None, patience, simulated=simulated))
        print(table(verdicts[-1:]), flush=True)
    if not all(verdict.is_right for verdict in verdicts):
        return verdicts
    limit = trio.CapacityLimiter(at_once)

    async def take(mutant: Mutant) -> None:
        async with limit:
            verdict = await judge(mutant, patience, simulated=mutant.is_simulated)
        print(table([verdict]), flush=True)
        verdicts.append(verdict)

    async with trio.open_nursery() as nursery:
        for mutant in chosen:
            nursery.start_soon(take, mutant)
    return sorted(verdicts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("name", nargs="*", help="which mutants; none means all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--patience", type=float, default=180, help="seconds of CPU for one")
    options = parser.parse_args(arguments)
    known = {mutant.name: mutant for mutant in mutants()}
    unknown = [name for name in options.name if name not in known]
    if unknown:
        parser.error(f"no mutant is called {unknown[0]!r}; there are: {', '.join(known)}")
    chosen = [known[name] for name in options.name or known]
    began = time.monotonic()
    verdicts = trio.run(judge_all, chosen, options.jobs, options.patience)
    wrong = [verdict for verdict in verdicts if not verdict.is_right]
    print(f"\n{table(verdicts)}\n")
    killed = sum(each.is_right and not each.name.startswith("(") for each in verdicts)
    print(f"{killed} of {len(chosen)} mutants killed in {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
