"""A result stays until its job has rerun, whatever is selected, forced, changed or killed.

A model knows of each job whether a command may run it. Between commands and within them, each job
that has had a line in `results.jsonl` has one, and it is the same unless its own job ran again.
"""

import json
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from random import Random

import trio
from hypothesis import given, settings, strategies as st

from sessionmgr import Job, run_batch
from sessionmgr.batch import Batch, JobsInvalid, Summary
from sessionmgr.testing.scripted_provider import Fail, Hang, ProviderLogEntry, Say, Step, Wait
from sessionmgr.testing.seeded_schedule import run_scheduled
from tests.batch.open_batch import BatchSetup, open_batch_setup

IDS = ("a1", "a2", "b1", "b2")
FAILED = {"failed", "timed_out", "rate_limited"}
LOOK_EVERY = 0.7


@dataclass(frozen=True)
class RerunCommand:
    """A user's edit of the jobs file, and the command that follows."""

    prompts: frozenset[str]
    """The jobs with a changed prompt."""
    gone: frozenset[str]
    """The jobs that are missing from the file this time."""
    deadline: float
    only: tuple[str, ...]
    skip: tuple[str, ...]
    force: bool
    keep_failed: bool
    concurrency: int
    ends: str
    after: float


some_ids = st.frozensets(st.sampled_from(IDS), max_size=2)
commands = st.builds(
    RerunCommand,
    prompts=some_ids,
    gone=some_ids,
    deadline=st.sampled_from([2.0, 50.0]),
    only=st.lists(st.sampled_from([*IDS, "a*", "b*"]), max_size=2).map(tuple),
    skip=st.lists(st.sampled_from([*IDS, "a*"]), max_size=1).map(tuple),
    force=st.booleans(),
    keep_failed=st.booleans(),
    concurrency=st.sampled_from([1, 3]),
    ends=st.sampled_from(["by itself", "by itself", "stop", "leave", "kill"]),
    after=st.sampled_from([0.0, 0.5, 1.5, 4.0]),
)


@dataclass
class RetentionModel:
    """A directory, and the user's knowledge of it."""

    setup: BatchSetup
    out: Path
    versions: Counter[str] = field(default_factory=Counter[str])
    lines: dict[str, bytes] = field(default_factory=dict[str, bytes])
    underway: set[str] = field(default_factory=set[str])
    """Jobs that a killed process may have started before they had a result."""
    is_killed: bool = False

    # --- the present state -----------------------------------------------------------------------

    def read(self) -> dict[str, bytes]:
        path = self.out / "results.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        found = {json.loads(line)["job"]: line for line in lines}
        assert len(found) == len(lines), "a job has several lines"
        return found

    def prompt(self, id: str) -> str:
        return f"{id} v{self.versions[id]}"

    def prompt_of(self, run_id: str) -> str:
        """Return the first prompt of a run's job."""
        entries: dict[str, ProviderLogEntry] = {
            each.run_id: each for each in self.setup.actor.log if each.what == "prompt"
        }
        while entries[run_id].text == "continue":
            run_id = entries[run_id].resumed_from or ""
        return entries[run_id].text

    # --- allowed changes -------------------------------------------------------------------------

    def selects(self, command: RerunCommand, id: str) -> bool:
        is_named = not command.only or any(fnmatchcase(id, glob) for glob in command.only)
        is_skipped = any(fnmatchcase(id, glob) for glob in command.skip)
        return id not in command.gone and is_named and not is_skipped

    def has_changed(self, id: str) -> bool:
        """Return whether a job has completed and its work has changed since."""
        if id not in self.lines:
            return False
        result = json.loads(self.lines[id])
        return result["status"] == "completed" and self.prompt_of(result["id"]) != self.prompt(id)

    def may_run(self, command: RerunCommand, id: str) -> bool:
        if not self.selects(command, id):
            return False
        if id not in self.lines or id in self.underway:
            return True
        status = json.loads(self.lines[id])["status"]
        if status == "completed":
            return command.force and self.has_changed(id)
        return not (command.keep_failed and status in FAILED)

    def is_refused(self, command: RerunCommand) -> bool:
        selected = [id for id in IDS if self.selects(command, id)]
        changed = [id for id in selected if self.has_changed(id)]
        return not selected or (bool(changed) and not command.force)

    def is_unsettled(self, command: RerunCommand) -> bool:
        """Return whether the command first resolves attempts of a killed process.

        New work that started by `force` continues without it, however many commands skip it.
        """
        begun = [id for id in self.underway if self.selects(command, id) and self.has_changed(id)]
        return self.is_killed or bool(begun)

    # --- the checks ------------------------------------------------------------------------

    def check(self, allowed: set[str]) -> None:
        """Compare the results with the former ones: only a job that may run has another line."""
        found = self.read()
        for id, before in self.lines.items():
            assert id in found, f"the line of {id} is gone"
            if found[id] != before:
                assert id in allowed, f"the line of {id} is another, and it may not have run"
                assert json.loads(found[id])["attempt"] > json.loads(before)["attempt"]

    def check_summary(self, command: RerunCommand, summary: Summary) -> None:
        found = self.read()
        wanted = Counter(
            json.loads(found[id])["status"] if id in found else "not_run"
            for id in IDS
            if id not in command.gone
        )
        assert summary.statuses == wanted
        assert summary.failures == Counter(
            json.loads(found[id])["failure"]["kind"]
            for id in IDS
            if id not in command.gone and id in found and json.loads(found[id])["failure"]
        )


def scripts(seed: int, prompt: str, attempt: int) -> tuple[Step, ...]:
    chance = Random(f"{seed}/{prompt}/{attempt}")
    well: tuple[Step, ...] = (Say(text="begun"), Wait(seconds=chance.choice([0, 1, 3])))
    ends: list[tuple[Step, ...]] = [(), (), (Fail(),), (Fail(retryable=True),), (Hang(),)]
    return (*well, *chance.choice(ends))


async def do(world: RetentionModel, command: RerunCommand) -> None:
    world.versions.update(command.prompts)
    allowed = {id for id in IDS if world.may_run(command, id)}
    is_sure = not world.is_unsettled(command)
    is_refused = world.is_refused(command)
    asked = len(world.setup.actor.log)
    jobs = [
        Job(id=id, provider="actor", prompt=world.prompt(id), deadline=command.deadline)
        for id in IDS
        if id not in command.gone
    ]
    batch = run_batch(
        world.setup.manager,
        jobs,
        out=world.out,
        only=command.only,
        skip=command.skip,
        force=command.force,
        keep_failed=command.keep_failed,
        concurrency=command.concurrency,
        retries=1,
    )
    is_killed = was_refused = False
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look, world, allowed | world.underway)
            is_killed = await use(world, command, batch)
            nursery.cancel_scope.cancel()
    except* JobsInvalid:
        was_refused = True
    assert was_refused == is_refused or not is_sure
    world.check(allowed | world.underway)
    entries = [each for each in world.setup.actor.log[asked:] if each.what == "prompt"]
    asked_for = {world.prompt_of(each.run_id) for each in entries}
    begun = {prompt.split()[0] for prompt in asked_for}
    assert begun <= allowed, "a job was run that may not be"
    assert asked_for <= {world.prompt(id) for id in IDS}, "another work was done than is asked for"
    if not (is_killed or was_refused):
        world.check_summary(command, batch.summary())
    found = world.read()
    if is_killed:
        world.underway |= begun
    world.underway -= {id for id in found if found[id] != world.lines.get(id)}
    world.lines, world.is_killed = found, is_killed


async def look(world: RetentionModel, allowed: set[str]) -> None:
    """Compare the results with the former ones repeatedly."""
    while True:
        world.check(allowed)
        await trio.sleep(LOOK_EVERY)


async def use(world: RetentionModel, command: RerunCommand, batch: Batch) -> bool:
    """Run a batch for a command; return whether it was killed."""
    copy = world.out.with_name("copy")
    async with batch:
        if command.ends == "by itself":
            await batch.wait()
            return False
        await trio.sleep(command.after)
        if command.ends == "stop":
            batch.stop("enough")
            await batch.wait()
        elif command.ends == "kill":  # only the files on disk survive
            shutil.copytree(world.out, copy, ignore=shutil.ignore_patterns("*-shm"))
    if command.ends != "kill":
        return False
    shutil.rmtree(world.out)
    copy.rename(world.out)
    return True


async def play(script: list[RerunCommand], seed: int, directory: Path) -> None:
    async with open_batch_setup(scripts=partial(scripts, seed), lawful=False) as setup:
        world = RetentionModel(setup, directory / "out")
        for command in script:
            await do(world, command)


@settings(max_examples=60)
@given(script=st.lists(commands, min_size=1, max_size=7), seed=st.integers(0, 1000))
def test_a_result_stays_until_its_own_job_runs_again(script: list[RerunCommand], seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run_scheduled(partial(play, script, seed, Path(directory)), seed)
