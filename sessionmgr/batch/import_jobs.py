"""Import of jobs into the ledger: all jobs are read and checked before the first one starts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import msgspec
import trio
from msgspec.structs import replace

from sessionmgr.adapter import StartRefused, installed_adapters
from sessionmgr.batch import ledger as states
from sessionmgr.batch.denials import denials_of
from sessionmgr.batch.errors import JobsInvalid
from sessionmgr.batch.file_executor import in_thread
from sessionmgr.batch.job import Job, work_fingerprint
from sessionmgr.batch.job_changes import describe_change, is_same_work
from sessionmgr.batch.job_drafts import JobDraft, JobDraftReader
from sessionmgr.batch.jobs_file import JobSource, unreadable_file_error
from sessionmgr.batch.ledger import JobEntry, KnownJob, Ledger
from sessionmgr.batch.overridden_flags import OverriddenFlags
from sessionmgr.batch.problems import Problem, Problems
from sessionmgr.batch.readiness import ReadinessCheck
from sessionmgr.batch.restart import StartMode
from sessionmgr.batch.results import decode_job_result
from sessionmgr.batch.run_request import rejected_field, run_request_for_job
from sessionmgr.manager import BudgetUnenforceable, RunGrant, RunRequestInvalid
from sessionmgr.model import PermissionMode, RunStatus
from sessionmgr.process import ProcessError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from sessionmgr.adapter import Health
    from sessionmgr.batch.file_executor import FileExecutor
    from sessionmgr.batch.jobs_file import Jobs
    from sessionmgr.batch.ownership import OwnershipClaim
    from sessionmgr.batch.settings import BatchSettings
    from sessionmgr.manager import Manager

SOME: Final = 5
"""Number of ids in an example list."""
MOST_FAULTY: Final = 10_000
"""Sentinel for rejected jobs whose ids are taken."""
EVERY: Final = 64
"""Maximum number of jobs in one transaction."""
MUCH: Final = 4 * 1024 * 1024
"""Maximum number of characters in their prompts."""
_WRITING: Final = ("files", "command_execution", "tool_use")
# The states that a rerun with `keep_failed` leaves unchanged.
FAILED: Final = frozenset({"failed", "timed_out", "rate_limited"})


class ImportedJob(msgspec.Struct, frozen=True):
    """A valid imported job: its grant and its state."""

    entered: JobEntry
    grant: RunGrant | None
    """None if the job would be refused now and does not run this time."""
    state: str
    """The state of the job in the ledger after the import."""
    is_undecided: bool
    """Whether the job waits for the user's decision."""


class JobCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The manager's check of a job: its grant, or the reason for its refusal."""

    draft: JobDraft
    grant: RunGrant | None = None
    directory: str = ""
    problems: tuple[Problem, ...] = ()


class JobImporter:
    """Imports jobs one by one into a ledger."""

    def __init__(
        self,
        manager: Manager,
        jobs: Jobs,
        settings: BatchSettings,
        ledger: Ledger,
        executor: FileExecutor,
        readiness: Callable[[Job], Health],
    ) -> None:
        self._manager: Final = manager
        self._source: Final = JobSource(jobs)
        self._left: Final = iter(self._source)
        self._drafts: Final = JobDraftReader(self._source, settings)
        self._executor: Final = executor
        self._settings: Final = settings
        self._ledger: Final = ledger
        self._readiness: Final = ReadinessCheck(readiness)
        self._problems: Final = Problems()
        self._invalid_lines: Final[dict[str, int]] = {}
        """The lines of jobs with problems; these jobs are not in the ledger."""
        self._chosen = 0
        self.asks = False
        """Whether the agent of any job to run may make approval requests."""
        self.count = 0
        """Number of jobs read so far."""
        self.undecided: Final[list[str]] = []
        """Jobs that wait for the user's decision."""
        self.unmatched_patterns: Final = {*settings.only, *settings.skip}
        """Patterns of `only` and `skip` that have matched no job id so far."""
        self.overridden_flags: Final = OverriddenFlags(settings)
        """Limits of the jobs to run that a flag does not override."""
        self._any_selected = False
        self._first_ids: Final[list[str]] = []

    @property
    def source(self) -> JobSource:
        """The source of the jobs."""
        return self._source

    async def import_all(
        self, claim: OwnershipClaim | None, check: Callable[[], Awaitable[None]]
    ) -> None:
        """Import all jobs and record the directory's owner; import nothing if `check` refuses them.

        Raises:
            JobsInvalid: Some jobs are invalid; the error names each and its problem.
        """
        await self._executor.run(self._ledger.begin_writing)
        try:
            await self.begin()
            while await self.import_chunk() is not None:
                pass
            await check()
            if claim is not None:
                await self._executor.run(lambda: claim.record(self._ledger))
        except BaseException:
            # `close` is shielded and bounded.
            await self._executor.close(self._ledger.roll_back)  # noqa: ASYNC102
            raise
        await self._executor.run(self._ledger.commit)

    async def begin(self) -> None:
        """Start the import.

        Raises:
            JobsInvalid: A setting names an unknown provider.
        """
        await self._executor.run(self._ledger.begin_round)
        self._require_providers()

    async def import_chunk(self) -> list[ImportedJob] | None:
        """Import the next jobs and return the valid ones; None at the end.

        Raises:
            JobsInvalid: At the end: some jobs are invalid.
        """
        try:
            found = await self._next_found()
            drafts = await in_thread(lambda: [self._drafts.read_draft(*each) for each in found])
        except OSError as error:
            raise JobsInvalid([unreadable_file_error(str(self._source), error)]) from error
        if not found:
            self._finish()
            return None
        checked = [self._check(draft) for draft in drafts]
        reads = await self._executor.run(lambda: [self._enter(each) for each in checked])
        return [
            read
            for read, draft in zip(reads, drafts, strict=True)
            if read is not None and self._is_ready(read, draft.where)
        ]

    async def _next_found(self) -> list[tuple[int, Job | list[Problem]]]:
        if self._source.path is not None:
            return await in_thread(self._read_chunk)
        await trio.lowlevel.checkpoint()
        return self._read_chunk()  # a program's iterable runs in its own task

    def _read_chunk(self) -> list[tuple[int, Job | list[Problem]]]:
        some: list[tuple[int, Job | list[Problem]]] = []
        size = 0
        for line, found in self._left:
            some.append((line, found))
            self.count += 1
            size += len(found.prompt or "") if isinstance(found, Job) else 0
            if len(some) >= EVERY or size >= MUCH:
                break
        return some

    def _finish(self) -> None:
        problems = [*self._problems.lines(), *self._readiness.problems()]
        if problems:
            raise JobsInvalid(problems, self._problems.unprinted)
        self._require_jobs()

    def _require_jobs(self) -> None:
        """Check that there are jobs and that the selection matches some.

        Raises:
            JobsInvalid: There are none.
        """
        if not self.count and self._source.path is not None:
            what = 'contains no jobs; write one per line: {"id": "a", "prompt": "…"}'
            raise JobsInvalid([f"{self._source}: {what}"])
        if self.count and not self._any_selected:
            flags = {"--only": self._settings.only, "--skip": self._settings.skip}
            said = ", ".join(f"{flag} {glob!r}" for flag, globs in flags.items() for glob in globs)
            ids = ", ".join(map(repr, self._first_ids)) + (", …" if self.count > SOME else "")
            jobs = "1 job" if self.count == 1 else f"{self.count} jobs"
            raise JobsInvalid([f"{said} selects none of {jobs}; ids: {ids}"])

    def _require_providers(self) -> None:
        """Check that all providers named in the settings exist.

        Raises:
            JobsInvalid: The settings name an unknown provider.
        """
        settings = self._settings
        said: dict[str, Collection[str]] = {
            "per_provider": settings.per_provider,
            "provider_defaults": settings.provider_defaults,
            "options": settings.options,
        }
        for what, providers in said.items():
            for provider in providers:
                try:
                    self._manager.supports(provider, "streaming")
                except StartRefused as error:
                    raise JobsInvalid([f"{what}: {error}"]) from error

    def _report_problems(self, *problems: Problem) -> None:
        for problem in problems:
            self._problems.add(problem)

    def _check(self, draft: JobDraft) -> JobCheck:
        """Ask the manager for a job's grant."""
        job = draft.job
        if job is None:
            return JobCheck(draft=draft, problems=draft.problems)
        try:
            grant = self._manager.check(
                job.provider or "", run_request_for_job(job), cwd=job.cwd or "."
            )
        except (StartRefused, ProcessError) as error:
            problem = self._report_refusal(error, draft, job)
            return JobCheck(draft=draft, problems=(problem,))
        return JobCheck(draft=draft, grant=grant, directory=self._directory(job))

    def _report_refusal(self, error: Exception, draft: JobDraft, job: Job) -> Problem:
        """Return the problem of a refused job; for a default, it names the default's source."""
        field = rejected_field(error, job)
        what = (
            error.why if isinstance(error, RunRequestInvalid | BudgetUnenforceable) else str(error)
        )
        budget = isinstance(error, BudgetUnenforceable)
        value = f"{job.budget_usd}" if budget and job.budget_usd is not None else ""
        source = self._settings.source_of(field, job.provider or "")
        source = source or ("the batch's defaults" if budget else "")
        if field in draft.own or not source:
            return Problem(draft.where, f"{field} ({value})" if value else field, what)
        said = ", ".join(filter(None, (value, f"from {source}")))
        if budget and source == self._settings.sources.get(field):
            what += self._budget_remedy(source, job.budget_usd or 0)
        return Problem("", f"{field} ({said})", what)

    def _budget_remedy(self, source: str, amount: float) -> str:
        """Return how to set a general budget only for the providers that report their cost."""
        able = [name for name in installed_adapters() if self._reports_cost(name)]
        if not able:
            return ""
        if source.startswith("-"):
            flags = " ".join(f"--set {name}.budget_usd={amount:g}" for name in able)
            return f": use {flags} instead of {source}"
        keys = ", ".join(f"provider.{name}.budget_usd = {amount:g}" for name in able)
        return f": set {keys} instead"

    def _reports_cost(self, provider: str) -> bool:
        try:
            return self._manager.supports(provider, "cost")
        except StartRefused:
            return False

    def _is_ready(self, read: ImportedJob, where: str) -> bool:
        """Return whether the provider of a job is ready, if the job will run this time."""
        return not read.entered.chosen or self._readiness.check(read.entered.job, where)

    def _enter(self, checked: JobCheck) -> ImportedJob | None:
        """Enter one job; None if it has a problem."""
        draft, ledger = checked.draft, self._ledger
        if draft.id is None:
            self._report_problems(*checked.problems)
            return None
        known = ledger.known_job(draft.id)
        before = self._invalid_lines.get(draft.id)
        if known is not None and known.round == ledger.round:
            before = known.line
        if before is not None:
            first = self._source.location(before)
            self._report_problems(
                Problem(draft.where, "id", f"{draft.id!r} is already used at {first}")
            )
            return None
        read = self._enter_once(draft.id, checked, known)
        if read is None and len(self._invalid_lines) < MOST_FAULTY:
            self._invalid_lines[draft.id] = draft.line
        return read

    def _enter_once(self, id: str, checked: JobCheck, known: KnownJob | None) -> ImportedJob | None:
        draft, is_meant = checked.draft, self._is_selected(id)
        if draft.job is None:
            if is_meant:
                self._report_problems(*checked.problems)
            elif known is not None:
                self._ledger.update_line(id, draft.line)
            return None
        entered = JobEntry(
            job=draft.job,
            line=draft.line,
            fingerprint=work_fingerprint(draft.digests),
            digests=draft.digests,
            directory=checked.directory,
            chosen=False,
        )
        return self._store_entry(entered, known, checked, is_meant=is_meant)

    def _store_entry(
        self, entered: JobEntry, known: KnownJob | None, checked: JobCheck, *, is_meant: bool
    ) -> ImportedJob | None:
        is_same = known is None or (
            is_same_work(known, entered) and not self._has_more_time(known, entered)
        )
        counted = known and self._effective_state(known, entered.job.id)
        state = states.WAITING if counted is None else self._state(counted, is_same=is_same)
        is_open = is_meant and state in states.UNENDED
        if is_open and checked.problems:
            self._report_problems(*checked.problems)
            return None
        selected = is_meant and self._is_within_limit()
        is_undecided = counted is not None and is_same and selected and self._is_undecided(counted)
        if is_undecided:
            self.undecided.append(entered.job.id)
        chosen = selected and is_open
        if chosen and known and counted and not is_same and self._is_done(counted):
            before = self._ledger.job(entered.job.id)[0]
            self._report_problems(describe_change(checked.draft.where, known, entered, before))
            return None
        self._chosen += chosen
        entered = replace(entered, chosen=chosen)
        self.asks = self.asks or (chosen and self._may_need_approval(entered.job))
        if chosen:
            self.overridden_flags.add_job(entered.job, checked.draft.own)
        if known is not None and not chosen:
            state = known.state  # the job keeps its state and its result
        if known is None or (chosen and not is_same):
            self._ledger.enter(entered)
        elif is_same:
            self._ledger.enter_again(entered, state)
        else:
            self._ledger.update_line(entered.job.id, entered.line)
        return ImportedJob(entered, checked.grant, state, is_undecided)

    def _may_need_approval(self, job: Job) -> bool:
        """Return whether an agent asks before actions that its permission mode leaves open."""
        mode = job.permission_mode or PermissionMode.DEFAULT
        is_asking = self._manager.supports(job.provider or "", "tool_approval")
        return is_asking and mode in (PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS)

    def _has_more_time(self, known: KnownJob, entered: JobEntry) -> bool:
        """Return whether a command that exceeded its deadline now has a longer one.

        A longer deadline is the decision to run it again: a command has no session to resume.
        """
        job = entered.job
        if known.state != RunStatus.TIMED_OUT or not self._manager.runs_commands(
            job.provider or ""
        ):
            return False
        before = self._ledger.job(job.id)[0].deadline
        return before is not None and (job.deadline is None or job.deadline > before)

    def _is_selected(self, job: str) -> bool:
        """Return whether the patterns select a job."""
        if len(self._first_ids) < SOME:
            self._first_ids.append(job)
        if self.unmatched_patterns:
            used = {each for each in self.unmatched_patterns if fnmatchcase(job, each)}
            self.unmatched_patterns.difference_update(used)
        is_meant = self._settings.selects(job)
        self._any_selected = self._any_selected or is_meant
        return is_meant

    def _is_within_limit(self) -> bool:
        return self._settings.limit is None or self._chosen < self._settings.limit

    def _effective_state(self, known: KnownJob, job: str) -> KnownJob:
        """Return a job with the state that counts: with `on_denied="fail"`, denials fail it."""
        if known.state != states.COMPLETED or self._settings.on_denied != "fail":
            return known
        was_denied = denials_of(decode_job_result(self._ledger.result(job)))
        return replace(known, state=RunStatus.FAILED) if was_denied else known

    def _is_done(self, known: KnownJob) -> bool:
        """Return whether a job has a result that only `force` replaces."""
        return known.state == states.COMPLETED and not self._settings.force

    def _state(self, known: KnownJob, *, is_same: bool) -> str:
        """Return the state of a selected job; `is_same`: its work has not changed."""
        before = known.state
        if before in FAILED and self._settings.keep_failed:
            return before
        if is_same and before in (states.COMPLETED, states.RUNNING, states.RETRYING):
            return before
        if is_same and self._is_undecided(known):
            return before
        return states.WAITING

    def _is_undecided(self, known: KnownJob) -> bool:
        """Return whether a job stays undecided until the user chooses how it restarts."""
        is_left = known.state in FAILED or known.state == states.CANCELLED
        return is_left and known.basis.start(self._settings.retry_from) is StartMode.UNDECIDED

    def _directory(self, job: Job) -> str:
        if job.permission_mode is PermissionMode.PLAN:
            return ""
        provider = job.provider or ""
        writes = any(self._manager.supports(provider, each) for each in _WRITING)
        return job.cwd or "" if writes else ""
