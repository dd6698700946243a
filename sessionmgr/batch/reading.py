"""Entering jobs into the ledger: all of them are read and checked before the first is started."""

from __future__ import annotations

import shlex
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import trio
from msgspec.structs import replace

from sessionmgr.batch import ledger as states
from sessionmgr.batch.job import fingerprint, meaning, work
from sessionmgr.batch.jobs_file import Problem, Source
from sessionmgr.batch.ledger import Entered, Known, Ledger
from sessionmgr.batch.readiness import Readiness
from sessionmgr.batch.restart import Start
from sessionmgr.batch.wish import field_to_blame, wish_of
from sessionmgr.errors import (
    AdapterBroken,
    BudgetUnenforceable,
    JobsInvalid,
    ProcessError,
    ProviderUnknown,
    StartRefused,
    WishInvalid,
)
from sessionmgr.model import PermissionMode, encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessionmgr.batch.job import Job
    from sessionmgr.batch.jobs_file import Jobs
    from sessionmgr.batch.settings import Settings
    from sessionmgr.manager import Grant, Manager
    from sessionmgr.provider import Health

SHOWN: Final = 25
"""So many problems are told one by one."""
EVERY: Final = 64
"""After so many jobs, others have their turn."""
_WRITING: Final = ("files", "command_execution", "tool_use")
# What a rerun leaves as it is, with `keep_failed`.
_FAILED: Final = frozenset({"failed", "timed_out", "rate_limited"})


class Read(msgspec.Struct, frozen=True):
    """A job that was read and found good: what it would be granted, and how it stands."""

    entered: Entered
    grant: Grant
    state: str
    """What the ledger has it as, from now on."""


class Reader:
    """Reads jobs, one by one, into a ledger."""

    def __init__(
        self,
        manager: Manager,
        jobs: Jobs,
        settings: Settings,
        ledger: Ledger,
        readiness: Callable[[Job], Health],
    ) -> None:
        self._manager: Final = manager
        self._source: Final = Source(jobs)
        self._settings: Final = settings
        self._ledger: Final = ledger
        self._readiness: Final = Readiness(readiness)
        self._problems: Final[list[str]] = []
        self._untold = 0
        self._chosen = 0
        self.count = 0
        """How many jobs were read so far."""
        self.undecided: Final[list[str]] = []
        """Jobs that are not begun again before the user has decided how."""
        self.idle_patterns: Final = {*settings.only, *settings.skip}
        """The patterns of what is to be done, or not, that no job's id has matched so far."""

    @property
    def source(self) -> str:
        """Where the jobs come from."""
        return self._source.full_name

    async def read_all(self) -> None:
        """Enter all jobs, or none.

        Raises:
            JobsInvalid: Some of them cannot be done; it says which, and why.
        """
        with self._ledger.together():
            for _ in self.reads():
                if self.count % EVERY == 0:
                    await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    def reads(self) -> Iterator[Read]:
        """Enter the jobs one by one, as they are asked for.

        Raises:
            JobsInvalid: At the end: some of them cannot be done.
        """
        self._ledger.begin_round()
        self._require_providers()
        try:
            for line, found in self._source:
                self.count += 1
                if isinstance(found, list):
                    self._complain(*found)
                elif (read := self._read(line, found)) is not None:
                    yield read
        except OSError as error:
            raise JobsInvalid([f"{self._source}: {error.strerror or error}"]) from error
        self._problems.extend(self._readiness.problems())
        if self._problems:
            raise JobsInvalid(self._problems, self._untold)

    def _require_providers(self) -> None:
        """Make sure that what is said of providers is said of some that there are.

        Raises:
            JobsInvalid: It says of which.
        """
        said = {"per_provider": self._settings.per_provider, "options": self._settings.options}
        for what, providers in said.items():
            for provider in providers:
                try:
                    self._manager.supports(provider, "streaming")
                except (ProviderUnknown, AdapterBroken) as error:
                    raise JobsInvalid([f"{what}: {error}"]) from error

    def _complain(self, *problems: Problem) -> None:
        for problem in problems:
            if str(problem) in self._problems:
                continue
            if len(self._problems) < SHOWN:
                self._problems.append(str(problem))
            else:
                self._untold += 1

    def _read(self, line: int, job: Job) -> Read | None:
        """Check one job and enter it; None if there is something wrong with it."""
        where, ledger = self._source.place(line), self._ledger
        own_budget = job.budget_usd is not None
        job = job.over(self._settings.defaults)
        known = ledger.known(job.id)
        if known is not None and known.round == ledger.round:
            first = self._source.place(known.line)
            self._complain(Problem(where, "id", f"{job.id!r} is taken: {first} has it"))
            return None
        given = self._settings.options.get(job.provider or "")
        if given:
            job = replace(job, options={**given, **(job.options or {})})
        complete = complete_job(job, where)
        if isinstance(complete, Problem):
            self._complain(complete)
            return None
        provider, cwd = complete.provider or "", complete.cwd or "."
        try:
            grant = self._manager.check(provider, wish_of(complete), cwd=cwd)
            digests = meaning(complete, cwd)
        except (StartRefused, ProcessError) as error:
            self._complain(self._refused(error, where, complete, is_own=own_budget))
            return None
        entered = Entered(
            job=complete,
            line=line,
            fingerprint=fingerprint(digests),
            digests=digests,
            directory=self._directory(complete),
            chosen=False,
        )
        read = self._entered(where, entered, known, grant)
        if read is not None and read.entered.chosen and not self._readiness.has(complete, where):
            return None
        return read

    def _refused(self, error: Exception, where: str, job: Job, *, is_own: bool) -> Problem:
        """Say what is wrong with a job; a default is named with its source, not with a line."""
        if not isinstance(error, BudgetUnenforceable) or job.budget_usd is None:
            what = error.why if isinstance(error, WishInvalid) else str(error)
            return Problem(where, field_to_blame(error, job), what)
        if is_own:
            return Problem(where, f"budget_usd ({job.budget_usd})", error.why)
        source = self._settings.sources.get("budget_usd", "the batch's defaults")
        return Problem("", f"budget_usd ({job.budget_usd}, from {source})", error.why)

    def _entered(
        self, where: str, entered: Entered, known: Known | None, grant: Grant
    ) -> Read | None:
        """Enter a job that is good in itself; None if its result would be lost by that."""
        is_same = known is None or _is_same_work(known, entered)
        state = states.WAITING if known is None else self._state(known, is_same=is_same)
        selected = self._is_selected(entered.job.id)
        if known is not None and is_same and selected and self._is_undecided(known):
            self.undecided.append(entered.job.id)
        chosen = selected and state in states.UNENDED
        if chosen and known is not None and not is_same and self._is_done(known):
            self._complain(_change(where, known, entered, self._ledger.job(entered.job.id)[0]))
            return None
        self._chosen += chosen
        entered = replace(entered, chosen=chosen)
        if known is not None and not chosen:
            state = known.state  # it is left as it is, with what came of it
        if known is None or (chosen and not is_same):
            self._ledger.enter(entered)
        elif is_same:
            self._ledger.keep(entered, state)
        else:
            self._ledger.leave(entered)
        return Read(entered, grant, state)

    def _is_selected(self, job: str) -> bool:
        if self.idle_patterns:
            used = {each for each in self.idle_patterns if fnmatchcase(job, each)}
            self.idle_patterns.difference_update(used)
        within = self._settings.limit is None or self._chosen < self._settings.limit
        return within and self._settings.selects(job)

    def _is_done(self, known: Known) -> bool:
        """Say whether a job has a result that only `force` gives up."""
        return known.state == states.COMPLETED and not self._settings.force

    def _state(self, known: Known, *, is_same: bool) -> str:
        """Return how a job is to stand if it is chosen; `is_same`: its work has not changed."""
        before = known.state
        if before in _FAILED and self._settings.keep_failed:
            return before
        if is_same and before in (states.COMPLETED, states.RUNNING, states.RETRYING):
            return before
        if is_same and self._is_undecided(known):
            return before
        return states.WAITING

    def _is_undecided(self, known: Known) -> bool:
        """Say whether a job is left as it is until the user has decided how it begins again."""
        is_left = known.state in _FAILED or known.state == states.CANCELLED
        return is_left and known.basis.start(self._settings.retry_from) is Start.UNDECIDED

    def _directory(self, job: Job) -> str:
        if job.permission_mode is PermissionMode.PLAN:
            return ""
        provider = job.provider or ""
        writes = any(self._manager.supports(provider, each) for each in _WRITING)
        return job.cwd or "" if writes else ""


def complete_job(job: Job, where: str) -> Job | Problem:
    """Return a job with all that its files hold, and its paths as they are meant."""
    if job.provider is None:
        return Problem(where, "provider", "the job names none, and there is no default")
    if (job.prompt is None) == (job.prompt_file is None):
        what = "the job has none" if job.prompt is None else "the job has a prompt, too"
        return Problem(where, "prompt" if job.prompt is None else "prompt_file", what)
    field = "prompt_file"
    try:
        prompt = job.prompt
        if job.prompt_file is not None:
            prompt = Path(job.prompt_file).read_text(encoding="utf-8")
        field = "images"
        images = None
        if job.images is not None:
            images = tuple(map(_readable, job.images))
    except OSError as error:
        return Problem(where, field, f"{error.filename}: {error.strerror}")
    except UnicodeDecodeError:
        return Problem(where, field, f"{job.prompt_file} is no UTF-8")
    cwd = str(Path(job.cwd or ".").resolve())
    return replace(job, prompt=prompt, prompt_file=None, images=images, cwd=cwd)


def _readable(image: str) -> str:
    with Path(image).open("rb"):
        return str(Path(image).resolve())


# What may be shown of a job; variables and options may be secrets.
_SHOWN: Final = frozenset("prompt provider model effort cwd permission_mode system_prompt".split())
_WIDTH: Final = 40


def _is_same_work(known: Known, entered: Entered) -> bool:
    # Older versions took the fingerprint of all fields; what those digests say of the work holds.
    same = known.fingerprint == entered.fingerprint
    return same or work(known.digests) == work(entered.digests)


def _change(where: str, known: Known, entered: Entered, before: Job) -> Problem:
    """Say what of a job's work has changed since it was completed."""
    was, now = work(known.digests), work(entered.digests)
    fields = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
    said = [
        f"{name} was {_short(getattr(before, name))} and is {_short(getattr(entered.job, name))}"
        for name in fields
        if name in _SHOWN
    ]
    what = f" ({', '.join(said)})" if said else ""
    return Problem(
        where,
        ", ".join(fields),
        f"job {before.id!r} has changed since it was run{what}; change it back, give it another"
        f" id, or have it run anew (--force --only {shlex.quote(escape(before.id))})",
    )


def _short(value: object) -> str:
    text = encode_json(msgspec.to_builtins(value)).decode()
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
