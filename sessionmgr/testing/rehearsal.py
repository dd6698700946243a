"""Rehearsals: batches on the installed agents with a scripted model, at no cost.

The agents run in the jobs' directories and with their tools. Their homes and settings are empty
ones of the rehearsal, and their API is a model server on loopback.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.batch import InProcessHost, Job, JobSource, Problem
from sessionmgr.model import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import Health
    from sessionmgr.batch import AttemptSpec, Jobs
    from sessionmgr.testing.model_server import IsolatedEnvironment


class ProviderOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a provider's jobs so that no option points to the real model."""

    removed: frozenset[str]
    """Options to remove."""
    added: Mapping[str, Json]
    """Options to set."""


PROVIDER_OVERRIDES: Final[Mapping[str, ProviderOverrides]] = {
    # A settings file, even a project's, may contain another API address and keys.
    "claude": ProviderOverrides(
        removed=frozenset({"home", "billing", "settings"}), added={"setting_sources": ["user"]}
    ),
    # Configuration may name any model provider; a project's is read only if it is trusted.
    "codex": ProviderOverrides(removed=frozenset({"home", "config", "model_provider"}), added={}),
}
"""The providers that can be rehearsed."""

_REMOVED_VARIABLES: Final = (
    *("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "AWS_*", "GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*"),
    *("AZURE_*", "VERTEX_*", "OPENAI_*", "CODEX_*", "*_PROXY", "HOME", "TMPDIR", "XDG_*"),
)
"""Variables of a job that name the model's address or account: they are removed."""


def agent_environment(isolated: IsolatedEnvironment) -> dict[str, str]:
    """Return the base environment of the agents, which replaces ours.

    Args:
        isolated: The isolated environment of the rehearsal.
    """
    return {**isolated.claude(), **isolated.codex()}


def unrehearsable_jobs(jobs: Jobs, defaults: Job | None) -> Iterator[Problem]:
    """Yield a problem for each job whose provider cannot be rehearsed.

    Args:
        jobs: The jobs of the batch.
        defaults: The job whose fields apply where a job sets nothing.
    """
    source = JobSource(jobs)
    for line, found in source:
        if isinstance(found, Job):  # the batch reports the other jobs' mistakes itself
            provider = found.with_defaults(defaults).provider
            if provider is not None and provider not in PROVIDER_OVERRIDES:
                known = ", ".join(PROVIDER_OVERRIDES)
                what = f"{provider} cannot be rehearsed; providers that can: {known}"
                yield Problem(source.location(line), "provider", what)


def rehearsed_job(job: Job) -> Job:
    """Return a job without the settings that point to the real model."""
    part = PROVIDER_OVERRIDES[job.provider or ""]
    options = {name: each for name, each in (job.options or {}).items() if name not in part.removed}
    env = {name: each for name, each in (job.env or {}).items() if not _is_removed_variable(name)}
    return msgspec.structs.replace(job, options={**options, **part.added}, env=env)


def _is_removed_variable(name: str) -> bool:
    return any(fnmatchcase(name.upper(), pattern) for pattern in _REMOVED_VARIABLES)


class RehearsalHost(InProcessHost):
    """The job host of a rehearsal: runs in this process, with the rehearsed jobs."""

    def readiness(self, job: Job) -> Health:
        """Report whether the agent of a rehearsed job is usable.

        Args:
            job: The job as the batch has it.
        """
        return super().readiness(rehearsed_job(job))

    async def submit(self, work: AttemptSpec) -> None:
        """Start an attempt at the rehearsed job.

        Args:
            work: The attempt and its job.
        """
        await super().submit(msgspec.structs.replace(work, job=rehearsed_job(work.job)))


def refused_hosts_message(strangers: Sequence[str]) -> str | None:
    """Return a message about refused connections to other hosts, if there were any.

    Args:
        strangers: The hosts to which the agents tried to connect.
    """
    if not strangers:
        return None
    return f"refused the agents' connections to other hosts: {', '.join(sorted({*strangers}))}"
