"""Batches on real agents whose model is a script: all of it happens, and nothing is paid for.

The agents are the installed ones, in the jobs' directories and with their tools. Their homes and
settings are empty ones of the rehearsal's own, and their API is a model server.
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
    """What a provider's jobs are made to say, so that no word of them leads to the real model."""

    removed: frozenset[str]
    """Options that are left aside."""
    added: Mapping[str, Json]
    """And options that are set."""


PROVIDER_OVERRIDES: Final[Mapping[str, ProviderOverrides]] = {
    # A file of settings, the project's too, may hold another address of the API, and keys.
    "claude": ProviderOverrides(
        removed=frozenset({"home", "billing", "settings"}), added={"setting_sources": ["user"]}
    ),
    # Configuration may name any provider of models; a project's is read of trusted ones alone.
    "codex": ProviderOverrides(removed=frozenset({"home", "config", "model_provider"}), added={}),
}
"""The providers with which there can be rehearsals."""

_LEFT: Final = (
    *("ANTHROPIC_*", "CLAUDE_*", "DISABLE_*", "AWS_*", "GOOGLE_*", "GCLOUD_*", "CLOUDSDK_*"),
    *("AZURE_*", "VERTEX_*", "OPENAI_*", "CODEX_*", "*_PROXY", "HOME", "TMPDIR", "XDG_*"),
)
"""Variables of a job that say where the model is and who pays: they are left aside."""


def agent_environment(hermitage: IsolatedEnvironment) -> dict[str, str]:
    """Return what the agents' environments are built from, in the place of ours."""
    return {**hermitage.claude(), **hermitage.codex()}


def unrehearsable_jobs(jobs: Jobs, defaults: Job | None) -> Iterator[Problem]:
    """Find the jobs that cannot be rehearsed, their provider being none whose model is played."""
    source = JobSource(jobs)
    for line, found in source:
        if isinstance(found, Job):  # what is wrong with others is told by the batch
            provider = found.with_defaults(defaults).provider
            if provider is not None and provider not in PROVIDER_OVERRIDES:
                what = f"{provider} cannot be rehearsed; it can be with: {', '.join(PROVIDER_OVERRIDES)}"
                yield Problem(source.location(line), "provider", what)


def rehearsed_job(job: Job) -> Job:
    """Return a job as it is played: without what says where its model is."""
    part = PROVIDER_OVERRIDES[job.provider or ""]
    options = {name: each for name, each in (job.options or {}).items() if name not in part.removed}
    env = {name: each for name, each in (job.env or {}).items() if not _is_removed_variable(name)}
    return msgspec.structs.replace(job, options={**options, **part.added}, env=env)


def _is_removed_variable(name: str) -> bool:
    return any(fnmatchcase(name.upper(), pattern) for pattern in _LEFT)


class RehearsalHost(InProcessHost):
    """The host of a rehearsal: here, with the jobs as they are rehearsed."""

    def readiness(self, job: Job) -> Health:
        """Report whether the agent of a rehearsed job is usable."""
        return super().readiness(rehearsed_job(job))

    async def submit(self, work: AttemptSpec) -> None:
        """Start an attempt."""
        await super().submit(msgspec.structs.replace(work, job=rehearsed_job(work.job)))


def refused_hosts_message(strangers: Sequence[str]) -> str | None:
    """Say whom the agents wanted to speak to beside the model, if anybody; they were not let."""
    if not strangers:
        return None
    return f"agents wanted to speak to others, and were refused: {', '.join(sorted({*strangers}))}"
