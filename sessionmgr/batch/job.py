"""A job: one prompt for one provider, with its limits and permissions."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, cast

import msgspec
from msgspec.structs import force_setattr

from sessionmgr.model import Json, PermissionMode, encode_json

if TYPE_CHECKING:
    from sessionmgr.model import PermissionModeName

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job of a batch. The batch's defaults replace omitted fields.

    Relative paths start at the directory in which the batch runs.
    """

    id: Name
    """Unique id of the job in its batch."""
    prompt: str | None = None
    """The prompt. A job has either this or `prompt_file`."""
    prompt_file: str | None = None
    """A file that contains the prompt."""
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
    """The only tools that the agent may use; by default all, and an empty list allows none."""
    tools_denied: tuple[str, ...] | None = None
    """Tools that the agent may not use."""
    require: tuple[str, ...] | None = None
    """Capabilities that the provider must have; the job is refused without them."""
    prefer: tuple[str, ...] | None = None
    """Capabilities that the job uses if the provider has them."""
    system_prompt: str | None = None
    """The system prompt."""
    max_turns: Count | None = None
    """Maximum number of turns."""
    deadline: Positive | None = None
    """Seconds for each attempt; without a deadline, an attempt may take any time."""
    budget_usd: Positive | None = None
    """Dollars for all attempts together: each attempt gets the remainder."""
    schema: dict[str, Json] | None = None
    """JSON Schema of the structured output."""
    images: tuple[str, ...] | None = None
    """Image files to send with the prompt."""
    env: dict[str, str] | None = None
    """Environment variables of the agent."""
    options: dict[str, Json] | None = None
    """Options of the provider."""
    metadata: dict[str, Json] | None = None
    """Values of the caller; the result repeats them."""

    if TYPE_CHECKING:  # accepted types; each value is stored as the type declared above

        def __init__(
            self,
            *,
            id: str,
            prompt: str | None = None,
            prompt_file: str | Path | None = None,
            provider: str | None = None,
            model: str | None = None,
            effort: str | None = None,
            cwd: str | Path | None = None,
            permission_mode: PermissionMode | PermissionModeName | None = None,
            tools_allowed: Collection[str] | None = None,
            tools_denied: Collection[str] | None = None,
            require: Collection[str] | None = None,
            prefer: Collection[str] | None = None,
            system_prompt: str | None = None,
            max_turns: int | None = None,
            deadline: float | None = None,
            budget_usd: float | None = None,
            schema: Mapping[str, object] | None = None,
            images: Collection[str | Path] | None = None,
            env: Mapping[str, str] | None = None,
            options: Mapping[str, object] | None = None,
            metadata: Mapping[str, object] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Convert paths, collections, mappings and modes to the fields' types.

        Values of other types stay as they are: the batch reports them with the job's location.
        """
        for name, plain in _PLAIN_TYPES.items():
            value = getattr(self, name)
            if value is not None:
                stored = plain(value)
                if stored is not value:
                    force_setattr(self, name, stored)

    def with_defaults(self, defaults: Job | None) -> Job:
        """Return this job with its omitted fields taken from `defaults`.

        `env`, `options` and `metadata` are merged name by name; options for another provider than
        the job's are ignored. A prompt replaces the default prompt, whichever of the two fields
        contains it.

        Args:
            defaults: The job whose fields apply where this one sets nothing.
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
            ours, default_value = getattr(self, name), outer[name]
            outer[name] = (
                {**default_value, **ours} if ours and default_value else ours or default_value
            )
        return Job(**{**outer, **said})


_MODES: Final = frozenset(mode.value for mode in PermissionMode)


def _path(value: object) -> object:
    return os.fspath(cast("os.PathLike[str]", value)) if _is(value, os.PathLike) else value


def _mode(value: object) -> object:
    return PermissionMode(value) if isinstance(value, str) and value in _MODES else value


def _names(value: object) -> object:
    if _is(value, tuple, str, bytes, Mapping) or not _is(value, Collection):
        return value
    return tuple(cast("Collection[object]", value))


def _paths(value: object) -> object:
    names = _names(value)
    if not _is(names, tuple):
        return names
    return tuple(map(_path, cast("tuple[object, ...]", names)))


def _object(value: object) -> object:
    if _is(value, dict) or not _is(value, Mapping):
        return value
    return dict(cast("Mapping[str, object]", value))


def _is(value: object, *types: type[object]) -> bool:
    return isinstance(value, types)


_PLAIN_TYPES: Final[Mapping[str, Callable[[object], object]]] = {
    "prompt_file": _path,
    "cwd": _path,
    "permission_mode": _mode,
    "tools_allowed": _names,
    "tools_denied": _names,
    "require": _names,
    "prefer": _names,
    "images": _paths,
    "schema": _object,
    "env": _object,
    "options": _object,
    "metadata": _object,
}
FIELDS: Final = Job.__struct_fields__
_JOINED: Final = ("env", "options", "metadata")
_SETS: Final = frozenset({"tools_allowed", "tools_denied", "require", "prefer"})
# An empty value of these fields equals an omitted one. `tools_allowed` is not among them: an
# empty list allows no tool.
_EMPTY: Final = frozenset({"tools_denied", "require", "prefer", "images", *_JOINED})


def job_digests(job: Job, cwd: str | None = None) -> dict[str, str]:
    """Return a digest of each field that is set; equivalent spellings have equal digests.

    Args:
        job: The job.
        cwd: Its working directory, if the caller has resolved it already.

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


def work_digests(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the digests that identify a job's work.

    Of the permission modes, only `plan` counts: its result is a plan, not the work.
    """
    same = {name: digest for name, digest in digests.items() if name in _WORK}
    if digests.get("permission_mode") == _PLAN:
        same["permission_mode"] = _PLAN
    return same


def work_fingerprint(digests: Mapping[str, str]) -> str:
    """Return one sha256 over a job's work."""
    return hashlib.sha256(encode_json(dict(sorted(work_digests(digests).items())))).hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_PLAN: Final = _digest(_ENCODER.encode(PermissionMode.PLAN))
