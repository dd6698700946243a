"""Lists of allowed and denied commands, applied to the programs that a prompt would start.

A command is identified by the file to which PATH, a relative path or links lead, and by the names
on the way there. The arguments of programs that start other programs are checked, too. A command
whose effect cannot be determined is refused, and the refusal gives the reason.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from sessionmgr.adapter.kit import (
    LAUNCH_ARGUMENTS,
    LAUNCHER_COMMANDS,
    MULTI_CALL,
    PREFIX_COMMANDS,
    SHELLS,
    NotSimpleError,
    ShellWord,
    SimpleCommand,
    find_command_ranges,
    is_opaque_command,
    launch_argument,
    read_script,
    shell_script_index,
    shell_word,
)
from sessionmgr.process import NotStartedError, find_program

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELL_BUILTINS: Final = frozenset({":", "cd", "exit", "false", "true"})
"""Built-ins of a shell that may be listed; all others are refused."""
_MOST_LINKS: Final = 40
_STARTING: Final = LAUNCHER_COMMANDS | LAUNCH_ARGUMENTS.keys()


class CommandRefusedError(Exception):
    """A command is not allowed, or its effect cannot be determined."""


class ResolvedProgram(NamedTuple):
    """Program to which a word leads as the name of a command."""

    word: str
    path: str | None
    """The file, by the path that finds it; None if there is none."""
    identity: tuple[int, int] | None
    names: frozenset[str]
    """The names on the way to the file."""


class CommandRules:
    """Rules for commands that start in `cwd` with this PATH."""

    def __init__(
        self, allowed: Sequence[str] | None, denied: Sequence[str], *, path: str, cwd: str
    ) -> None:
        self._cwd = cwd
        self._path = path
        self._known: dict[tuple[int, int], set[str]] = {}
        for folder in path.split(":"):
            if not Path(folder).is_absolute():
                raise CommandRefusedError(
                    f"PATH contains {folder!r}, which is not absolute; "
                    "the programs in it cannot be determined"
                )
        self._allowed = None if allowed is None else [self._program(each) for each in allowed]
        self._denied = [self._program(each) for each in denied]
        for name in (*LAUNCHER_COMMANDS, *LAUNCH_ARGUMENTS):
            found = self._program(name)
            if found.identity is not None and not found.names & MULTI_CALL:
                self._known.setdefault(found.identity, set()).add(name)

    def check_argv(self, argv: Sequence[str]) -> list[str]:
        """Check a command, and return its argv with paths instead of names.

        Raises:
            CommandRefusedError: The rules do not allow it.
        """
        try:
            return self._check_command([ShellWord(each, each) for each in argv], builtins=False)
        except NotSimpleError as error:
            raise CommandRefusedError(_undetermined_error(error)) from None

    def check_script(self, text: str) -> str:
        """Check a script, and return an equivalent one that executes exactly what was checked.

        Raises:
            CommandRefusedError: The rules do not allow a command, or it cannot be determined.
        """
        try:
            return self._script(text)
        except NotSimpleError as error:
            raise CommandRefusedError(_undetermined_error(error)) from None

    def _script(self, text: str) -> str:
        script = read_script(text)
        moves = any(
            isinstance(each, SimpleCommand) and _called_programs(each, "cd") for each in script
        )
        pieces: list[str] = []
        for each in script:
            if isinstance(each, str):
                pieces.append(each)
                continue
            words = (
                self._check_command(each.words, builtins=True, moves=moves) if each.words else []
            )
            for given, checked in zip(each.words, words, strict=False):
                pieces.append(shell_word(given if given.glob else ShellWord(checked, checked)))
            pieces.extend(redirection.text() for redirection in each.redirections)
        return " ".join(pieces)

    def _check_command(
        self,
        words: Sequence[ShellWord],
        *,
        builtins: bool,
        moves: bool = False,
        inside: bool = False,
    ) -> list[str]:
        """Check a command and those that it would start."""
        program = self._program(words[0].text)
        self._require_allowed(program)
        texts = [each.text for each in words]
        if any(map(is_opaque_command, program.names)) or Path(program.word).name in MULTI_CALL:
            raise NotSimpleError(f"cannot determine what {program.word} starts")
        self._require_no_launch(program, words, texts)
        if program.path is None:
            if inside:
                raise NotSimpleError(f"program not found: {program.word}")
            if builtins and program.word not in SHELL_BUILTINS:
                raise NotSimpleError(
                    f"program not found: {program.word}; it may be a shell built-in"
                )
            return texts
        if moves and "/" in program.word and not Path(program.word).is_absolute():
            raise NotSimpleError(f"cannot determine which file {program.word} is after a cd")
        texts[0] = program.path
        return self._unwrap(program, words, texts, moves=moves)

    def _unwrap(
        self, program: ResolvedProgram, words: Sequence[ShellWord], texts: list[str], *, moves: bool
    ) -> list[str]:
        """Check the arguments of a program that starts others."""
        assert program.identity is not None
        names = program.names | self._known.get(program.identity, set())
        called = Path(program.word).name
        starters = names & LAUNCHER_COMMANDS
        if any(map(is_opaque_command, names)):
            raise NotSimpleError(f"cannot determine what {called} starts")
        if not starters:
            return texts
        if any(word.glob for word in words):
            raise NotSimpleError(
                f"cannot determine the arguments of {called}, which starts other programs"
            )
        if starters & SHELLS:
            place = shell_script_index(called, [each.text for each in words])
            texts[place] = self._script(texts[place])
            return texts
        if "find" in starters:
            for begin, end in find_command_ranges(texts):
                inner = texts[begin:end] = self._inner_command(words[begin:end], moves=moves)
                if self._names(inner[0]) & LAUNCHER_COMMANDS and any(
                    "{}" in each for each in inner
                ):
                    raise NotSimpleError(
                        f"cannot determine what {inner[0]} does with the files found"
                    )
            return texts
        if len(starters) > 1:
            raise NotSimpleError(
                f"cannot determine which of {', '.join(sorted(starters))} {called} is"
            )
        (name,) = starters
        at = PREFIX_COMMANDS[name].inner(called, texts)
        if at is None:
            return texts
        if "=" in texts[at]:
            raise NotSimpleError(f"cannot determine the program once {texts[at]} is set")
        inner = self._inner_command(words[at:], moves=moves)
        if name == "xargs" and self._names(inner[0]) & _STARTING:
            raise NotSimpleError(f"cannot determine the arguments that {inner[0]} gets from xargs")
        return [*texts[:at], *inner]

    def _require_no_launch(
        self, program: ResolvedProgram, words: Sequence[ShellWord], texts: list[str]
    ) -> None:
        """Refuse an argument that names a program to start, or a pattern that could."""
        names = self._names(program.word)
        if (argument := launch_argument(names, texts)) is not None:
            raise NotSimpleError(f"cannot determine what {program.word} starts for {argument}")
        if names & LAUNCH_ARGUMENTS.keys() and any(
            word.glob and word.raw[0] in "*?[-" for word in words
        ):
            raise NotSimpleError(
                f"cannot determine the arguments of {program.word}: a file name can be an option"
            )

    def _inner_command(self, words: Sequence[ShellWord], *, moves: bool) -> list[str]:
        if not words or "{}" in words[0].text:
            raise NotSimpleError("cannot determine a command that is the file found")
        return self._check_command(words, builtins=False, moves=moves, inside=True)

    def _names(self, word: str) -> frozenset[str]:
        program = self._program(word)
        known = self._known.get(program.identity, set()) if program.identity else set[str]()
        return program.names | known

    # --- the lists -------------------------------------------------------------------------------

    def _require_allowed(self, program: ResolvedProgram) -> None:
        for denied in self._denied:
            if _is_denied(program, denied):
                raise CommandRefusedError(f"{program.word} is denied ({denied.word} is listed)")
        if self._allowed is None or any(_is_allowed(program, each) for each in self._allowed):
            return
        listed = ", ".join(each.word for each in self._allowed) or "none"
        raise CommandRefusedError(f"{program.word} is not allowed; allowed: {listed}")

    def _program(self, word: str) -> ResolvedProgram:
        """Return the program that a word means as a command."""
        name = Path(word).name or word
        try:
            found = find_program(*map(os.fsencode, (word, self._path, self._cwd)))
        except NotStartedError:
            return ResolvedProgram(word, None, None, frozenset({name}))
        path = os.fsdecode(found)
        status = Path(path).stat()
        return ResolvedProgram(word, path, (status.st_dev, status.st_ino), _link_names(path))


def _is_allowed(program: ResolvedProgram, listed: ResolvedProgram) -> bool:
    """Whether two programs are the same file under the same name: one file may be many programs."""
    same_name = Path(program.word).name == Path(listed.word).name
    return same_name and program.identity == listed.identity


def _is_denied(program: ResolvedProgram, listed: ResolvedProgram) -> bool:
    if "/" not in listed.word and listed.word in program.names:
        return True
    if program.identity is None or program.identity != listed.identity:
        return False
    if program.names & MULTI_CALL:
        return Path(program.word).name == Path(listed.word).name
    return True


def _link_names(path: str) -> frozenset[str]:
    """Return the names of all links from a path to its file, and the name of that file."""
    names: set[str] = set()
    at = Path(path)
    for _ in range(_MOST_LINKS):
        names.add(at.name)
        if not at.is_symlink():
            break
        at = at.parent / at.readlink()
    names.add(Path(path).resolve().name)
    return frozenset(names)


def _called_programs(plain: SimpleCommand, name: str) -> bool:
    return bool(plain.words) and plain.words[0].text == name


def _undetermined_error(error: NotSimpleError) -> str:
    return (
        f"{error}; so the lists of commands cannot be applied: "
        "write plain commands, one after the other, without expansions"
    )
