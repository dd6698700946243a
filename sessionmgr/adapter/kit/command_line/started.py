"""The commands that a shell line or an argv starts, including those by way of prefix commands.

A line that a shell would expand, group or redefine is refused (`NotPlainError`), because it can be
any command. A command that starts others in an unknown way, or runs code from an argument
(`python3 -c`), is marked so. Programs that run files (`make`, `python3 x.py`) count as plain
commands.
"""

from __future__ import annotations

import re
from posixpath import basename
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit.command_line.code_arguments import code_argument
from sessionmgr.adapter.kit.command_line.prefix_commands import (
    KNOWN,
    LAUNCHING,
    MULTI_CALL,
    RUNNERS,
    SHELLS,
    WRAPPERS,
    found_by,
    is_opaque,
    launches,
    run_by,
    script_of,
)
from sessionmgr.adapter.kit.command_line.script import RESERVED, Plain, read_script
from sessionmgr.adapter.kit.command_line.tokenizer import NotPlainError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.kit.command_line.tokenizer import Word

LONGEST: Final = 128 * 1024
"""Maximum number of characters of a line to analyze."""
MOST: Final = 256
"""Maximum number of nested commands to analyze."""
MOST_ARGUMENTS: Final = 1024
"""Maximum number of commands that runners may start, by all their arguments."""
BEGINNING: Final = 32
"""Maximum number of words to keep of a command that a runner may start."""
_NAME: Final = re.compile(r"[A-Za-z0-9_./:@%+,-]+")
# Control characters, and blanks that only some shells treat as blanks.
_UNSURE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|[^\S \t\n]")
_VARIANT: Final = re.compile(r"([a-z]+)[.-].*")
# The shell expands an array subscript, even one that was in single quotes.
_SUBSCRIPT: Final = re.compile(r"\[.*[$`]", re.DOTALL)
_NAMES_VARIABLES: Final = frozenset("getopts let printf read test unset wait".split())
_LOOKED_INTO: Final = SHELLS | WRAPPERS.keys()
"""Commands started by a runner that start others in turn."""
_BUILTINS: Final = frozenset(
    ". - abbr alias and autoload begin bind bindkey cmd cmd.exe compgen complete compopt declare "
    "emulate enable export fc foreach hash hist history iex integer invoke-command "
    "invoke-expression local mapfile nameref nocorrect noglob not or powershell powershell.exe r "
    "readarray readonly repeat sched source start-process trap typeset zcompile zle zmodload zpty "
    "zstyle".split()
)
"""Shell built-ins that run, or make later words run, commands named elsewhere."""


Words: TypeAlias = tuple[str | None, ...]
"""A command's words; None stands for any words, such as those from a pattern or input."""


class Started(msgspec.Struct, frozen=True):
    """One command of a line, and the commands that it starts."""

    words: Words
    exact: bool
    """Whether it is exactly its words, and the line just this command: no pattern, no redirection,
    no quotes around its name."""
    inner: tuple[Words, ...] = ()
    """The commands that it starts, directly and indirectly."""
    unknown: str | None = None
    """Why it is uncertain what it starts."""


def commands_of_line(line: str) -> list[Started]:
    """Return the commands of a shell line.

    Raises:
        NotPlainError: They cannot be determined.
    """
    one_line = "\n" not in line.strip("\n")
    return [
        _started(
            _known(plain.words),
            exact=one_line and not plain.redirections and not plain.words[0].quoted,
            unknown=_code_in([each.text for each in plain.words]),
        )
        for plain in _plain_commands(line)
    ]


def command_of_argv(argv: Sequence[str]) -> Started:
    """Return the command of an argv, in which no shell expands a word.

    Raises:
        NotPlainError: It is empty.
    """
    if not argv:
        raise NotPlainError("it holds no command")
    return _started(tuple(argv), exact=True)


def _plain_commands(line: str) -> list[Plain]:
    if len(line) > LONGEST:
        raise NotPlainError(f"it has more than {LONGEST} characters")
    if found := _UNSURE.search(line):
        raise NotPlainError(f"it contains the character {found[0]!a}")
    return [each for each in read_script(line) if isinstance(each, Plain) and each.words]


def _known(words: Sequence[Word]) -> Words:
    return tuple(None if each.glob or _has_braces(each) else each.text for each in words)


def _has_braces(word: Word) -> bool:
    return "{" in word.raw and word.raw != "{}"


def _started(words: Words, *, exact: bool, unknown: str | None = None) -> Started:
    found: list[Words] = []
    perhaps: list[Words] = []
    waiting = [words]
    try:
        while waiting:
            command = waiting.pop()
            inner = _started_by(command)
            found += inner
            waiting += inner
            run = _perhaps_run_by(command)
            perhaps += run
            if len(perhaps) > MOST_ARGUMENTS:
                raise NotPlainError(f"it may start more than {MOST_ARGUMENTS} commands")
            waiting += [each for each in run if _name_of(each) in _LOOKED_INTO or _has_code(each)]
            if len(found) > MOST:
                raise NotPlainError(f"it starts more than {MOST} commands")
    except NotPlainError as error:
        unknown = str(error)
    return Started(
        words,
        exact and None not in words and not _expands(words),
        (*found, *perhaps),
        unknown,
    )


def _perhaps_run_by(words: Words) -> list[Words]:
    """Return the commands that a runner (`npx`, `uv run`) may start: every end of its words."""
    name = _name_of(words)
    if name not in RUNNERS:
        return []
    ends = run_by(name, [each or "" for each in words])[: MOST_ARGUMENTS + 1]
    return [_beginning_at(at, words) for at in ends if words[at] is not None]


def _beginning_at(at: int, words: Words) -> Words:
    end = at + BEGINNING
    return words[at:end] if end >= len(words) else (*words[at:end], None)


def _code_in(words: Sequence[str]) -> str | None:
    """Return why it is uncertain what a command with code in its arguments does."""
    name = basename(words[0]).lower()
    argument = code_argument(name, words)
    if argument is None:
        return None
    return f"cannot determine what {name} does for {argument or 'the code that it reads'}"


def _require_no_code(words: Sequence[str]) -> None:
    if (why := _code_in(words)) is not None:
        raise NotPlainError(why)


def _has_code(words: Words) -> bool:
    """Whether a command that a runner may start has code in its arguments."""
    return bool(code_argument(_name_of(words), ["*" if each is None else each for each in words]))


def _name_of(words: Words) -> str:
    return basename(words[0] or "").lower()


def _expands(words: Words) -> bool:
    """Whether a built-in expands a subscript in its arguments, quoted or not."""
    return words[0] in _NAMES_VARIABLES and any(
        each is not None and _SUBSCRIPT.search(each) for each in words
    )


def _started_by(words: Words) -> list[Words]:
    """Return the commands that a command's arguments start.

    Raises:
        NotPlainError: They cannot be determined.
    """
    first = words[0]
    if first is None or not _NAME.fullmatch(first):
        raise NotPlainError(f"{first or 'a pattern'} may be any command")
    name = basename(first).lower()  # a file system may ignore case
    variant = _VARIANT.fullmatch(name)  # bash.exe, busybox-static
    if (
        not name
        or is_opaque(name)
        or (name in RESERVED and name not in WRAPPERS)
        or name in MULTI_CALL | _BUILTINS
        or (variant is not None and variant[1] in SHELLS | MULTI_CALL)
    ):
        raise NotPlainError(f"cannot determine what {first} starts")
    known = [each for each in words if each is not None]
    if _expands(words):
        raise NotPlainError(f"cannot determine what {name} expands")
    _require_no_code(["*" if each is None else each for each in words])
    if name not in KNOWN and name not in LAUNCHING:
        return []
    if len(known) < len(words):
        raise NotPlainError(f"the arguments of {name} are unknown and may be a command")
    if (argument := launches({name}, known)) is not None:
        raise NotPlainError(f"cannot determine what {name} starts for {argument}")
    if name in SHELLS:
        script = known[script_of(name, known, login=True)]
        plain = _plain_commands(script)
        for each in plain:
            _require_no_code([word.text for word in each.words])
        return [_known(each.words) for each in plain]
    if name == "find":
        return [_filled(known[begin:end]) for begin, end in found_by(known)]
    return _wrapped(name, known) if name in WRAPPERS else []


def _filled(words: list[str]) -> Words:
    """Return the commands that `find` starts; `{}` is an unknown path."""
    if not words:
        raise NotPlainError("find has no command")
    if (basename(words[0]) in KNOWN or basename(words[0]) in LAUNCHING) and any(
        "{}" in each for each in words
    ):
        raise NotPlainError(f"cannot determine what {words[0]} does with the files found")
    return tuple(None if "{}" in each else each for each in words)


def _wrapped(name: str, words: list[str]) -> list[Words]:
    at = WRAPPERS[name].inner(name, words)
    if at is None:
        return []
    inner = words[at:]
    if "=" in inner[0]:
        raise NotPlainError(f"cannot determine the files found once {inner[0]} is set")
    if name != "xargs":
        return [tuple(inner)]
    if basename(inner[0]) in KNOWN or basename(inner[0]) in LAUNCHING:
        raise NotPlainError(f"cannot determine the arguments that {inner[0]} gets from xargs")
    return [(*inner, None)]
