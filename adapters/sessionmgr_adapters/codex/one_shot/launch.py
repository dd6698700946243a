"""How `codex exec` is started for a run: its command line, and what goes in private files.

Nothing here waits. Whatever decides what it may do stands on the command line as an override of
its configuration, for a new thread and for one that goes on: a thread remembers what it was
allowed before, and `resume` has no flags for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Json, encode_json
from sessionmgr.process import Command, checked_resume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.process.launcher import Launcher
    from sessionmgr.provider import RunContext

SCHEMA: Final = "schema.json"
ANSWER: Final = "answer"

# Nobody is there to be asked; nobody is told what we do; and the key is none of the commands'.
ALWAYS: Final[tuple[tuple[str, Json], ...]] = (
    ("approval_policy", "never"),
    ("analytics.enabled", False),
    ("shell_environment_policy.ignore_default_excludes", False),
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
    """Overrides of its configuration, dotted."""
    thread: str | None = None
    """The one that it goes on in."""
    is_fork: bool = False
    images: tuple[str, ...] = ()
    schema: Json = None

    def command(self, answer: str, schema: str | None) -> Command:
        """Return how it is started, to leave its answer in a file, by the schema in another.

        The prompt is written to it: everybody on the machine may read a command line.
        """
        argv = [*self.program, "exec"]
        for name, value in (*self.settings, *ALWAYS, ("sandbox_mode", self.sandbox)):
            if value is not None:
                argv += ["-c", f"{name}={toml(value)}"]
        if self.thread is not None:
            argv.append("fork" if self.is_fork else "resume")
        # A flag must follow the images, or they swallow what is no flag.
        argv += [f"--image={each}" for each in self.images]
        argv += ["--json", "--skip-git-repo-check", f"--output-last-message={answer}"]
        if schema is not None:
            argv.append(f"--output-schema={schema}")
        if self.thread is not None:
            argv.append(self.thread)
        argv.append("-")
        return Command(argv=tuple(argv), cwd=self.cwd, env=self.env)


def make_spec(
    run: RunContext,
    *,
    program: tuple[str, ...],
    sandbox: str,
    settings: Mapping[str, Json],
    is_fork: bool = False,
) -> OneShotSpec:
    """Say what a run needs.

    Raises:
        ProcessError: What it needs cannot be started.
    """
    thread = run.provider_session_id
    if thread is not None:
        checked_resume_id(thread)
    wished: dict[str, Json] = dict(settings)
    if run.model is not None:
        wished["model"] = run.model
    if run.effort is not None:
        wished["model_reasoning_effort"] = run.effort
    if run.system_prompt is not None:
        wished["developer_instructions"] = run.system_prompt
    if run.directories:
        wished["sandbox_workspace_write.writable_roots"] = list(run.directories)
    return OneShotSpec(
        launcher=run.launcher,
        program=program,
        cwd=run.cwd,
        env=dict(run.env),
        sandbox=sandbox,
        settings=tuple(wished.items()),
        thread=thread,
        is_fork=is_fork,
        images=run.images,
        schema=run.schema,
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
