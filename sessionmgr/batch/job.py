"""A job: one prompt for one provider, with all that is to be observed about it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

from sessionmgr.model import Json, PermissionMode, encode_json

if TYPE_CHECKING:
    from collections.abc import Mapping

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be done. A field that is left out is as the batch's defaults have it.

    Paths that are relative start at the directory in which the batch is run.
    """

    id: Name
    """Tells the job from every other one in the batch."""
    prompt: str | None = None
    """The prompt. A job has either this or `prompt_file`."""
    prompt_file: str | None = None
    """A file that holds the prompt."""
    provider: str | None = None
    """The agent to use, such as `claude` or `codex`."""
    model: str | None = None
    """The model; the default is the agent's own."""
    effort: str | None = None
    """Reasoning effort, such as `low`, `medium` or `high`; the default is the agent's own."""
    cwd: str | None = None
    """The working directory; the default is that of the batch."""
    permission_mode: PermissionMode | None = None
    """What the agent may do without asking; the default is `default`."""
    tools_allowed: tuple[str, ...] | None = None
    """The only tools that the agent may use."""
    tools_denied: tuple[str, ...] | None = None
    """Tools that the agent may not use."""
    require: tuple[str, ...] | None = None
    """Capabilities without which the job is refused."""
    prefer: tuple[str, ...] | None = None
    """Capabilities that it takes where they are to be had."""
    system_prompt: str | None = None
    """The system prompt."""
    max_turns: Count | None = None
    """Maximum number of turns."""
    deadline: Positive | None = None
    """Seconds for each attempt."""
    budget_usd: Positive | None = None
    """Dollars for all attempts together: each attempt gets the remainder."""
    schema: dict[str, Json] | None = None
    """JSON Schema of the structured output."""
    images: tuple[str, ...] | None = None
    """Image files that belong to the prompt."""
    env: dict[str, str] | None = None
    """Environment variables of the agent."""
    options: dict[str, Json] | None = None
    """The provider's own."""
    metadata: dict[str, Json] | None = None
    """The caller's own; it is found again in the result."""

    def over(self, defaults: Job | None) -> Job:
        """Return this job, with what `defaults` say where it says nothing.

        `env`, `options` and `metadata` are joined name by name; options of another provider than
        the job's are left aside. A prompt, however it is given, takes the place of the default one.
        """
        if defaults is None:
            return self
        said = {
            name: value
            for name in FIELDS
            if (value := getattr(self, name)) is not None and name not in _JOINED
        }
        outer = {name: getattr(defaults, name) for name in FIELDS}
        if "prompt" in said or "prompt_file" in said:
            outer |= {"prompt": None, "prompt_file": None}
        if self.provider not in (None, defaults.provider):
            outer["options"] = None
        for name in _JOINED:
            ours, theirs = getattr(self, name), outer[name]
            outer[name] = {**theirs, **ours} if ours and theirs else ours or theirs
        return Job(**{**outer, **said})


FIELDS: Final = Job.__struct_fields__
_JOINED: Final = ("env", "options", "metadata")
_SETS: Final = frozenset({"tools_allowed", "tools_denied", "require", "prefer"})
# For these, to be empty is to say nothing; a list of allowed tools that is empty allows none.
_EMPTY: Final = frozenset({"tools_denied", "require", "prefer", "images", *_JOINED})


def meaning(job: Job, cwd: str | None = None) -> dict[str, str]:
    """Return a digest of each field that says something: what is spelled otherwise has the same.

    `cwd` is its directory, if that has been resolved already.

    Raises:
        OSError: A file that the job names cannot be read.
    """
    values: dict[str, Json] = msgspec.to_builtins(job)
    values.pop("id")
    if job.prompt_file is not None:
        values["prompt"] = Path(job.prompt_file).read_text(encoding="utf-8")
        values["prompt_file"] = None
    values["cwd"] = cwd or str(Path(job.cwd or ".").resolve())
    values["permission_mode"] = job.permission_mode or PermissionMode.DEFAULT
    if job.images:
        values["images"] = [_digest(Path(image).read_bytes()) for image in job.images]
    for name in _SETS:
        named = getattr(job, name)
        values[name] = None if named is None else sorted(set(named))
    return {
        name: _digest(_ENCODER.encode(value))
        for name, value in sorted(values.items())
        if value is not None and not (name in _EMPTY and not value)
    }


# The fields that define a job's work. The others limit it (deadline, budget, turns, permission
# mode, tools), require something of the provider, or label it: they do not affect the validity
# of a result, and users change them to let a failed job go further.
_WORK: Final = frozenset(
    "prompt provider model effort cwd system_prompt schema images env options".split()
)


def work(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the digests that identify a job's work.

    Of the permission modes, only `plan` counts: its result is a plan, not the work.
    """
    same = {name: digest for name, digest in digests.items() if name in _WORK}
    if digests.get("permission_mode") == _PLAN:
        same["permission_mode"] = _PLAN
    return same


def fingerprint(digests: Mapping[str, str]) -> str:
    """Return one sha256 over a job's work."""
    return hashlib.sha256(encode_json(dict(sorted(work(digests).items())))).hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_PLAN: Final = _digest(_ENCODER.encode(PermissionMode.PLAN))
