"""How `codex exec` is started for a run: its command line, and what goes in private files.

Nothing here waits. What it may do is said to a thread that goes on as to a new one, because a
thread remembers what it was allowed before. The sandbox is said by its flag, which must stand
before `resume`: a setting of it gives way to `default_permissions` in the user's configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Json, encode_json
from sessionmgr.process import Command, checked_resume_id
from sessionmgr_adapters.codex.exec.profile import parted, require_free

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter import RunContext
    from sessionmgr.process.launcher import Launcher

SCHEMA: Final = "schema.json"
ANSWER: Final = "answer"
INSTRUCTIONS: Final = "instructions"
PROFILE: Final = "profile.toml"
WORKSPACE: Final = "sandbox_workspace_write"

# Nobody is there to be asked, and nobody is told what we do.
ALWAYS: Final[tuple[tuple[str, Json], ...]] = (
    ("approval_policy", "never"),
    ("analytics.enabled", False),
)


class OneShotSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A `codex exec` to start."""

    launcher: Launcher
    program: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    sandbox: str
    """`read-only`, `workspace-write` or `danger-full-access`."""
    settings: tuple[tuple[str, Json], ...] = ()
    """Overrides of its configuration, dotted; the later ones win."""
    secrets: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    """Settings that must not appear on its command line, as tables."""
    home: Path = Path("/nonexistent")
    """Codex's home with its configuration."""
    thread: str | None = None
    """The one that it goes on in."""
    is_fork: bool = False
    is_ruled: bool = True
    """Whether the user's rules hold, by which commands may get out of the sandbox."""
    images: tuple[str, ...] = ()
    schema: Json = None
    instructions: str | None = None
    """In place of those that it has by itself."""

    @property
    def files(self) -> dict[str, str]:
        """The private files that it reads, and the one that it leaves its answer in."""
        files = {ANSWER: ""}
        if self.schema is not None:
            files[SCHEMA] = encode_json(self.schema).decode()
        if self.instructions is not None:
            files[INSTRUCTIONS] = self.instructions
        if self.secrets:
            lines = [f"{_quoted(name)} = {toml(value)}\n" for name, value in self.secrets.items()]
            files[PROFILE] = "".join(lines)
        return files

    @property
    def links(self) -> dict[str, str]:
        """The links to its images that lie beside them: it takes a comma in a name for two."""
        return {f"image{n}": str(Path(self.cwd, each)) for n, each in enumerate(self.images)}

    def command(self, paths: Mapping[str, str], profile: str | None = None) -> Command:
        """Return how it is started, where its files and links are at `paths`.

        The prompt is written to it: everybody on the machine may read a command line.
        """
        argv = [*self.program, "exec", f"--sandbox={self.sandbox}"]
        argv += [] if profile is None else [f"--profile={profile}"]
        argv += [] if self.is_ruled else ["--ignore-rules"]
        instructions = ("model_instructions_file", paths.get(INSTRUCTIONS))
        for name, value in (instructions, *self.settings, *ALWAYS):
            if value is not None:
                argv += ["-c", f"{name}={toml(value)}"]
        if self.thread is not None:
            argv.append("fork" if self.is_fork else "resume")
        # A flag must follow the images, or they swallow what is no flag.
        argv += [f"--image={paths[each]}" for each in self.links]
        argv += ["--json", "--skip-git-repo-check", f"--output-last-message={paths[ANSWER]}"]
        if SCHEMA in paths:
            argv.append(f"--output-schema={paths[SCHEMA]}")
        if self.thread is not None:
            argv.append(self.thread)
        argv.append("-")
        return Command(argv=tuple(argv), cwd=self.cwd, env=self.env)


def make_spec(
    run: RunContext,
    *,
    program: tuple[str, ...],
    home: Path,
    sandbox: str,
    settings: Mapping[str, Json],
    bounds: Mapping[str, Json],
    instructions: str | None = None,
    is_fork: bool = False,
    is_ruled: bool = True,
) -> OneShotSpec:
    """Say what a run needs; what `bounds` say, no setting says otherwise.

    Raises:
        ProcessError: What it needs cannot be started.
    """
    thread = run.provider_session_id
    if thread is not None:
        checked_resume_id(thread)
    wished, secret = parted(settings)
    if secret:
        require_free(program)
    if run.model is not None:
        wished["model"] = run.model
    if run.effort is not None:
        wished["model_reasoning_effort"] = run.effort
    if run.system_prompt is not None:
        wished["developer_instructions"] = run.system_prompt
    bounds = {**bounds, f"{WORKSPACE}.writable_roots": list(run.directories)}
    return OneShotSpec(
        launcher=run.launcher,
        program=program,
        cwd=run.cwd,
        env=dict(run.env),
        sandbox=sandbox,
        settings=(*wished.items(), *bounds.items()),
        secrets=secret,
        home=home,
        thread=thread,
        is_fork=is_fork,
        is_ruled=is_ruled,
        images=run.images,
        schema=run.schema,
        instructions=instructions,
    )


def toml(value: Json) -> str:
    """Return a value as the command line takes it: TOML, on one line, which has no null."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            known = [(key, each) for key, each in value.items() if each is not None]
            inside = ", ".join(f"{_quoted(key)} = {toml(each)}" for key, each in known)
            return f"{{{inside}}}"
        case list():
            return f"[{', '.join(toml(each) for each in value if each is not None)}]"
        case str():
            return _quoted(value)
        case _:
            return repr(value)


def _quoted(text: str) -> str:
    # A string of JSON is one of TOML, but for one character that must not stand for itself.
    return encode_json(text).decode().replace("\x7f", "\\u007f")
