"""Entry points of batches: `run_batch`, `dry_run`, and their options."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypedDict, Unpack, cast

from sessionmgr.batch.batch import Batch
from sessionmgr.batch.dry_run_report import DryRun
from sessionmgr.batch.in_process_host import InProcessHost
from sessionmgr.batch.jobs_file import require_jobs
from sessionmgr.batch.settings import BatchSettings, failure_kinds, retry_from
from sessionmgr.manager import BATCH_ARGUMENTS, ArgumentKind, Manager, require_arguments

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from sessionmgr.adapter import Approve
    from sessionmgr.batch.denials import OnDenied
    from sessionmgr.batch.host import Host
    from sessionmgr.batch.job import Job
    from sessionmgr.batch.jobs_file import Jobs
    from sessionmgr.model import Json


class BatchOptions(TypedDict, total=False):
    """Options of a batch, as keyword arguments."""

    concurrency: int | None
    """Maximum number of concurrent jobs; the default is 4, or the sum of `per_provider` if more."""
    per_provider: Mapping[str, int]
    """Maximum number of concurrent jobs for each provider."""
    retries: int
    """Maximum number of retries of a job after transient failures; the default is 2."""
    retry_on: Collection[str] | None
    """The kinds of failure to retry; None: those marked as transient. For jobs that have made
    tool calls, `retry_from` also applies."""
    retry_from: str
    """How to restart an incomplete job that has made tool calls: `session` (the default) resumes
    its provider session and never starts it over, `fresh` starts it over and may repeat its tool
    calls, `ask` leaves it for a decision."""
    max_failures: int | None
    """Number of failed jobs after which no more jobs start."""
    keep_failed: bool
    """Whether a rerun keeps the results of failed jobs instead of running them again."""
    force: bool
    """Whether completed jobs whose work has changed run again instead of being refused."""
    on_denied: OnDenied
    """A job with denials: `warn` shows it, `fail` counts it as failed."""
    ignore_pauses: bool
    """Whether to use providers that are paused because a batch on the same store hit a limit."""
    limit: int | None
    """Maximum number of jobs to run in this call."""
    only: Collection[str]
    """Patterns of job ids: run only these jobs in this call."""
    skip: Collection[str]
    """Patterns of job ids: do not run these jobs in this call."""
    defaults: Job | None
    """Values of fields that jobs omit; its id has no meaning."""
    provider_defaults: Mapping[str, Job]
    """The same for the jobs of each provider; these override `defaults`."""
    sources: Mapping[str, str]
    """The source of each default (a file, a flag), for messages."""
    options: Mapping[str, Mapping[str, object]]
    """Default options for each provider."""


def _is_manager(value: object) -> bool:
    return isinstance(value, Manager)


_MANAGER: Final = {
    "manager": ArgumentKind(_is_manager, "the Manager of an open block", is_required=True)
}


def run_batch(
    manager: Manager,
    jobs: Jobs,
    *,
    out: str | Path | None = None,
    approve: Approve | None = None,
    host: Host | None = None,
    **how: Unpack[BatchOptions],
) -> Batch:
    """Run many jobs concurrently; for use as an async context manager that yields results.

    With a directory `out`, the same call again continues the batch: the directory identifies it.

    Args:
        manager: The manager of an open block.
        jobs: A file with one JSON object per line, or an iterable of `Job`s or dicts of their
            fields.
        out: The directory of the batch; by default nothing is stored beside the manager's store.
        approve: The async function that answers the agents' requests; without one they are denied.
        host: The host on which the jobs run; by default this process.
        how: Any of the fields of `BatchOptions`: `concurrency`, `per_provider`, `retries`,
            `retry_on`, `retry_from`, `max_failures`, `keep_failed`, `force`, `on_denied`,
            `ignore_pauses`, `limit`, `only`, `skip`, `defaults`, `provider_defaults`, `sources`,
            `options`.

    Raises:
        ValueError: A setting has an invalid value.
        TypeError: A setting is unknown.

    Example:
        ```python
        async def main() -> None:
            jobs = [{"id": name, "provider": "shell", "prompt": f"echo {name}"} for name in "abc"]
            async with open_manager() as manager, run_batch(manager, jobs) as results:
                async for result in results:
                    print(result.job, result.status)
        ```
    """
    require_arguments("run_batch", _MANAGER, {"manager": manager})
    require_arguments("run_batch", BATCH_ARGUMENTS, {**how, "out": out, "approve": approve})
    require_jobs("run_batch", jobs)
    is_answered = approve is not None or host is not None
    host = InProcessHost(manager, approve=approve) if host is None else host
    return Batch(manager, jobs, _make_settings(how), host, out, is_answered=is_answered)


def dry_run(
    manager: Manager,
    jobs: Jobs,
    *,
    out: str | Path | None = None,
    approve: Approve | None = None,
    **how: Unpack[BatchOptions],
) -> DryRun:
    """Report what `run_batch` would do with each job, and start nothing; for use as a block.

    Args:
        manager: The manager of an open block.
        jobs: The jobs, as for `run_batch`.
        out: The directory of the batch, if there is one.
        approve: The function that would answer the agents' requests.
        how: The same options as for `run_batch`.

    Raises:
        ValueError: A setting has an invalid value.
        TypeError: A setting is unknown.
    """
    require_arguments("dry_run", _MANAGER, {"manager": manager})
    require_arguments("dry_run", BATCH_ARGUMENTS, {**how, "out": out, "approve": approve})
    require_jobs("dry_run", jobs)
    return DryRun(manager, jobs, _make_settings(how), out, is_answered=approve is not None)


def _make_settings(how: BatchOptions) -> BatchSettings:
    for name in how.keys() - BatchOptions.__annotations__.keys():
        hint = "".join(
            f"; did you mean {each!r}?"
            for each in get_close_matches(name, BatchOptions.__annotations__, n=1)
        )
        raise TypeError(f"run_batch: unknown argument {name!r}{hint}")
    retry_on = how.get("retry_on")
    return BatchSettings(
        concurrency=how.get("concurrency"),
        per_provider=how.get("per_provider", {}),
        retries=how.get("retries", 2),
        retry_on=None if retry_on is None else failure_kinds(retry_on),
        retry_from=retry_from(how.get("retry_from", "session")),
        max_failures=how.get("max_failures"),
        keep_failed=how.get("keep_failed", False),
        force=how.get("force", False),
        on_denied=how.get("on_denied", "warn"),
        ignore_pauses=how.get("ignore_pauses", False),
        limit=how.get("limit"),
        only=tuple(how.get("only", ())),
        skip=tuple(how.get("skip", ())),
        defaults=how.get("defaults"),
        provider_defaults=how.get("provider_defaults", {}),
        sources=how.get("sources", {}),
        options=cast("Mapping[str, Mapping[str, Json]]", how.get("options", {})),
    )
