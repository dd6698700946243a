"""Mutation tests: `python -m tests.mutants.run [name ...]` shows that tests detect each mutant.

Each mutant is applied to a copy of the package. The tests of otp run on the copy until one fails;
for mutants of the manager the simulation runs with up to 200 seeds. The unchanged sources go first
and must pass. The exit code is 1 if a mutant survives or its patch does not apply.
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
"""Seconds of CPU between two samples that count as work."""
IDLE = 60.0
"""Seconds without work after which a command counts as hung."""
SLOWEST = 20
"""Upper limit of elapsed seconds per second of CPU: some commands work now and then."""
FOUND = re.compile(r"--(seed \d+) .*\n\s*(.*)")


class MutantVerdict(NamedTuple):
    """The result of one mutant."""

    name: str
    killer: str
    seconds: float
    is_right: bool


async def judge(
    mutant: Mutant | None, patience: float, *, simulated: bool = False
) -> MutantVerdict:
    """Run the tests or the simulation against `mutant`, or against the unchanged sources."""
    name = f"(none{', simulated' if simulated else ''})" if mutant is None else mutant.name
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        root = Path(directory)
        copy_package(root)
        copy_tests(root, "simulation" if simulated else "otp")
        error = "" if mutant is None else mutant.apply(root)
        if error:
            return MutantVerdict(name, f"does not apply: {error}", 0.0, is_right=False)
        began = time.monotonic()
        if simulated:
            code, output = await run_simulations(root, patience)
        else:
            code, output = await run_tests(root, [] if mutant is None else mutant.first, patience)
        seconds = time.monotonic() - began
    failed = (FOUND if simulated else FAILED).search(output)
    if code == 0:
        return MutantVerdict(name, SURVIVED, seconds, is_right=mutant is None)
    if failed is not None:
        killer = ": ".join(failed.groups())[:100]
    else:
        killer = "timed out" if code is None else output.strip()[-300:]
    is_found = failed is not None or not simulated
    return MutantVerdict(name, killer, seconds, is_right=mutant is not None and is_found)


def copy_tests(root: Path, folder: str) -> None:
    """Copy a folder of tests to `root`, with the configuration of pytest."""
    ignored = shutil.ignore_patterns("__pycache__")
    (root / "tests").mkdir()
    for path in [TESTS / "__init__.py", TESTS / "conftest.py", TESTS.parent / "pyproject.toml"]:
        shutil.copy(path, root / path.relative_to(TESTS.parent))
    shutil.copytree(TESTS / folder, root / "tests" / folder, ignore=ignored)


async def run_simulations(root: Path, patience: float) -> tuple[int | None, str]:
    """Return the exit code of the simulation, or None after a time-out, and its output."""
    command = [sys.executable, "-m", "tests.simulation", "--first", "--lines", "1"]
    return await run([*command, "--seeds", f"0:{SEEDS}"], root, patience)


async def run_tests(root: Path, first: Sequence[str], patience: float) -> tuple[int | None, str]:
    """Return the exit code of pytest, or None after a time-out, and its output."""
    files = [f"tests/otp/{name}.py" for name in first]
    chosen = [file for file in files if (root / file).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-o", "faulthandler_timeout=0", "--hypothesis-seed=1"]
    return await run([*command, *chosen, "tests/otp"], root, patience)


async def run(
    command: Sequence[str], root: Path, patience: float, path: str | None = None
) -> tuple[int | None, str]:
    """Run a command on the sources below `root`, or on those of `path`.

    The exit code is None if the command used more than `patience` seconds of CPU, or was idle for
    long. CPU time is the measure because elapsed time depends on the other load of the machine.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(root) if path is None else path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(root / "hypothesis"),
    }
    output = root / "output"
    with output.open("wb") as out:
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
    return code, output.read_text(encoding="utf-8", errors="replace")


async def _wait_for_end(process: trio.Process, patience: float) -> None:
    """Wait until a process has ended, has used its CPU time, or has been idle for long."""
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
    """Return the CPU time of a process and its ended children; 0 if the process is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return 0.0
    return sum(map(int, stat.rpartition(") ")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def table(verdicts: Sequence[MutantVerdict]) -> str:
    """Return one line per mutant."""
    width = max(len(verdict.name) for verdict in verdicts)
    return "\n".join(
        f"{'ok' if each.is_right else 'NO'}  {each.name:{width}} {each.seconds:6.1f} s  "
        + each.killer
        for each in verdicts
    )


async def judge_all(chosen: Sequence[Mutant], at_once: int, patience: float) -> list[MutantVerdict]:
    """Judge the unchanged sources, then all mutants, `at_once` at a time."""
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
    """Judge the named mutants, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("name", nargs="*", help="names of mutants (default: all)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutants at once (default: the CPUs)"
    )
    parser.add_argument(
        "--patience", type=float, default=180, help="seconds of CPU per mutant (default: 180)"
    )
    options = parser.parse_args(arguments)
    known = {mutant.name: mutant for mutant in mutants()}
    unknown = [name for name in options.name if name not in known]
    if unknown:
        parser.error(f"unknown mutant {unknown[0]!r}; known are: {', '.join(known)}")
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
