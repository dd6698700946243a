"""What is to be started: a program, its arguments, where, and with which environment."""

from __future__ import annotations

from pathlib import Path

import msgspec

from sessionmgr.process.errors import CommandInvalid


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A child to start. Nothing is inherited: `env` is the whole of its environment.

    `stdin=False` gives it /dev/null to read from. Its text names the variables of the environment
    and not their values, so that it may be logged.

    Raises:
        CommandInvalid: no system could start this; the text says why.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdin: bool = True

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise CommandInvalid("it names no program")
        for place, argument in enumerate(self.argv):
            if "\0" in argument:
                raise CommandInvalid(f"argument {place} holds a NUL: {argument!r}")
        if "\0" in self.cwd or not Path(self.cwd).is_absolute():
            raise CommandInvalid(f"its directory is no absolute path: {self.cwd!r}")
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name:
                raise CommandInvalid(f"no variable can be named {name!r}")
            if "\0" in value:
                raise CommandInvalid(f"the variable {name} holds a NUL")
        # A frozen value must not change when the caller's dictionary does.
        msgspec.structs.force_setattr(self, "env", dict(self.env))

    def __repr__(self) -> str:
        names = " ".join(sorted(self.env))
        return f"Command(argv={self.argv!r}, cwd={self.cwd!r}, env=<{names}>, stdin={self.stdin})"
