"""The command line, environment and private files of a `gemini` process."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from sessionmgr.process import Command, EnvironmentSpec, validate_session_id
from sessionmgr_adapters.acp import quirks_of
from sessionmgr_adapters.gemini.permissions import policy_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr_adapters.gemini.options import GeminiOptions

GEMINI_ENVIRONMENT: Final = EnvironmentSpec(
    names=("GEMINI_*", "GOOGLE_*", "GCLOUD_PROJECT", "CODE_ASSIST_*"),
    secret=("GEMINI_CLI_CUSTOM_HEADERS",),
)
TIERS: Final = quirks_of("gemini").models
"""Our names of model tiers, with Gemini's names, which it resolves to its present models."""
LONGEST_PROMPT: Final = 8 * 1024 * 1024
"""Bytes of stdin that Gemini reads; it drops the rest."""
POLICY: Final = "policy.toml"
SYSTEM_PROMPT: Final = "system.md"
SCRATCH: Final = "tmp"
IMAGES: Final = "images"
"""A directory of its own, because the agent may write there."""
ADMIN_POLICIES: Final = Path("/etc/gemini-cli/policies")
"""If the machine has policies there, Gemini ignores those on its command line."""
_SPECIAL: Final = re.compile(r"([^\w./-])", re.ASCII)


class HeadlessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A `gemini` process: its program, settings and texts."""

    program: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    mode: str
    """Gemini's permission mode."""
    session: str
    """The id of the session, ours if it is new."""
    is_resumed: bool = False
    output: str = "stream-json"
    model: str | None = None
    directories: tuple[str, ...] = ()
    policy: str = ""
    """Policy rules as TOML; "" for none."""
    system_prompt: str | None = None
    """Text in place of Gemini's own system prompt."""

    def renewed(self) -> HeadlessSpec:
        """Return the process of a new session."""
        return replace(self, session=str(uuid.uuid4()), is_resumed=False)

    @property
    def files(self) -> dict[str, str]:
        """The private files that it reads."""
        files = {POLICY: self.policy} if self.policy else {}
        if self.system_prompt is not None:
            files[SYSTEM_PROMPT] = self.system_prompt
        return files

    def command(self, private: Path, images: Sequence[Path] = ()) -> Command:
        """Return the command, with its files in a private directory.

        The prompt goes to stdin: every user of the machine can read a command line.
        """
        argv = [*self.program, f"--output-format={self.output}", f"--approval-mode={self.mode}"]
        argv += [] if self.model is None else [f"--model={self.model}"]
        shown = (str(private / IMAGES),) if images else ()
        directories = (*self.directories, *shown)
        argv += [f"--include-directories={each}" for each in directories]
        argv += [f"--admin-policy={private / POLICY}"] if self.policy else []
        argv.append(f"--{'resume' if self.is_resumed else 'session-id'}={self.session}")
        env = {**self.env, "TMPDIR": str(private / SCRATCH), "GEMINI_CLI_NO_RELAUNCH": "true"}
        if self.system_prompt is not None:
            env["GEMINI_SYSTEM_MD"] = str(private / SYSTEM_PROMPT)
        return Command(argv=tuple(argv), cwd=self.cwd, env=env)


def make_headless_spec(run: RunContext, options: GeminiOptions) -> HeadlessSpec:
    """Return the `gemini` process that a run needs.

    Raises:
        ProcessError: The id of the session to resume is not valid.
    """
    session = run.provider_session_id
    env = gemini_environment(run.env, options, run.cwd)
    mode = run.permission.effective
    return HeadlessSpec(
        program=options.command,
        cwd=run.cwd,
        env=env,
        mode=mode,
        session=str(uuid.uuid4()) if session is None else validate_session_id(session),
        is_resumed=session is not None,
        output=options.output,
        model=None if run.model is None else TIERS.get(run.model, run.model),
        directories=run.directories,
        policy=policy_rules(mode, run.tools_denied),
        system_prompt=run.system_prompt,
    )


def gemini_environment(env: Mapping[str, str], options: GeminiOptions, cwd: str) -> dict[str, str]:
    """Return the environment of Gemini, with its home and our defaults of its settings."""
    settings = quirks_of("gemini").default_settings
    found = {**env, **({} if settings is None else settings.variables(env))}
    if options.home is not None:
        found["GEMINI_CLI_HOME"] = os.path.join(cwd, options.home)  # noqa: PTH118  # pure
    return found


def gemini_home(env: Mapping[str, str]) -> Path | None:
    """Return Gemini's directory of settings and sessions; None if no home is set."""
    home = env.get("GEMINI_CLI_HOME") or env.get("HOME")
    return Path(home, ".gemini") if home else None


def prompt_text(prompt: str, options: GeminiOptions, images: Sequence[Path] = ()) -> bytes:
    """Return the input of a run: a prompt that is not taken for a command, and its images."""
    is_literal = prompt.startswith("/") and not options.slash_commands
    files = ["\n@" + _SPECIAL.sub(r"\\\1", str(each)) for each in images]
    return "".join([" " if is_literal else "", prompt, *files]).encode(errors="replace")
