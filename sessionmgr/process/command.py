"""Commands: a program, its arguments, its directory and its environment."""

from __future__ import annotations

from pathlib import Path

import msgspec

from sessionmgr.process.errors import CommandInvalid


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Command that starts a child. `env` is its whole environment; the child inherits nothing.

    `stdin=False` connects its stdin to /dev/null. Its repr shows the names of the variables and not
    their values, so it may be logged.

    Raises:
        CommandInvalid: The system cannot start such a command; the message names the reason.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdin: bool = True

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise CommandInvalid("argv names no program")
        for place, argument in enumerate(self.argv):
            if "\0" in argument:
                raise CommandInvalid(f"argv[{place}] contains a NUL byte: {argument!r}")
        if "\0" in self.cwd or not Path(self.cwd).is_absolute():
            raise CommandInvalid(f"cwd is not an absolute path: {self.cwd!r}")
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name:
                raise CommandInvalid(f"env: invalid variable name {name!r}")
            if "\0" in value:
                raise CommandInvalid(f"env: the value of {name} contains a NUL byte")
        # A frozen value must not change when the caller's dictionary does.
        msgspec.structs.force_setattr(self, "env", dict(self.env))

    def __repr__(self) -> str:
        names = " ".join(sorted(self.env))
        return f"Command(argv={self.argv!r}, cwd={self.cwd!r}, env=<{names}>, stdin={self.stdin})"
