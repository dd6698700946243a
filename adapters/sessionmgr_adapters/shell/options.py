"""Options of the provider `shell`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from sessionmgr.adapter import Options
from sessionmgr.model import EXPECTED, seconds_from

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class ShellOptions(Options, frozen=True, kw_only=True):
    """Options of a command, and which commands are allowed.

    The lists hold names (`git`) or paths (`/usr/bin/git`, `./tool`). In the mode `default` only
    `allowed_commands` run; null allows all. A command in `denied_commands` runs in no mode. The
    lists restrict which programs this adapter starts, not the actions of an interpreter, a script
    or a copy of a program once it runs.
    """

    shell: bool = False
    """Have /bin/sh read the prompt. Otherwise the prompt is an argv; an unquoted `;`, `&`, `|`,
    `<`, `>`, `*`, `$`, backtick or line break is refused, because it was meant for a shell."""
    cwd: str | None = None
    """The start directory, relative to the session's directory. It does not confine the command."""
    timeout: Seconds | str | None = 30.0
    """Seconds, or a text like "15m"; null: no limit. A run that exceeds it is timed_out."""
    allowed_commands: tuple[str, ...] | None = None
    """The commands that run in the mode `default`, by name (`git`) or path; null allows all."""
    denied_commands: tuple[str, ...] = ()
    """The commands that run in no mode."""
    success_exit_codes: tuple[int, ...] = (0,)
    """The exit codes of a completed run."""
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables beside those of the environment; those of the run itself override them."""

    @property
    def limit(self) -> float | None:
        """The timeout in seconds."""
        return None if self.timeout is None else seconds_from(self.timeout)

    def variables(self) -> Mapping[str, str]:
        """Return the variables in `env`."""
        return self.env

    def __post_init__(self) -> None:
        if self.timeout is not None and not seconds_from(self.timeout):
            raise ValueError(f"timeout: expected {EXPECTED}, got {self.timeout!r}")
        for each in (*(self.allowed_commands or ()), *self.denied_commands):
            if not each or each != each.strip() or any(map(str.isspace, each)):
                raise ValueError(f"expected the name or path of a command, not {each!r}")
