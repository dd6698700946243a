"""The commands that a shell line or an argv starts, including those started by prefix commands.

A line that a shell would expand, group or redefine is refused (`NotSimpleError`), because it can be
any command. A command that starts others in an unknown way, or runs code from an argument (`python3
-c`), is marked so. Programs that run files (`make`, `python3 x.py`) count as plain commands.
"""

from __future__ import annotations

import re
from posixpath import basename
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit.command_line.code_arguments import find_code_argument
from sessionmgr.adapter.kit.command_line.prefix_commands import (
    LAUNCH_ARGUMENTS,
    LAUNCHER_COMMANDS,
    MULTI_CALL,
    PREFIX_COMMANDS,
    RUNNERS,
    SHELLS,
    find_command_ranges,
    is_opaque_command,
    launch_argument,
    runner_command_indexes,
    shell_script_index,
)
from sessionmgr.adapter.kit.command_line.simple_commands import RESERVED, SimpleCommand, read_script
from sessionmgr.adapter.kit.command_line.tokenizer import NotSimpleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.kit.command_line.tokenizer import ShellWord

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
_UNCERTAIN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|[^\S \t\n]")
_VARIANT: Final = re.compile(r"([a-z]+)[.-].*")
# The shell expands an array subscript, even one that was in single quotes.
_SUBSCRIPT: Final = re.compile(r"\[.*[$`]", re.DOTALL)
_NAMES_VARIABLES: Final = frozenset("getopts let printf read test unset wait".split())
_UNWRAPPED_COMMANDS: Final = SHELLS | PREFIX_COMMANDS.keys()
"""Commands started by a runner that start others in turn."""
_BUILTINS: Final = frozenset(
    ". - abbr alias and autoload begin bind bindkey cmd cmd.exe compgen complete compopt declare "
    "emulate enable export fc foreach hash hist history iex integer invoke-command "
    "invoke-expression local mapfile nameref nocorrect noglob not or powershell powershell.exe r "
    "readarray readonly repeat sched source start-process trap typeset zcompile zle zmodload zpty "
    "zstyle".split()
)
"""Shell built-ins that run, or make later words run, commands named elsewhere."""


CommandWords: TypeAlias = tuple[str | None, ...]
"""A command's words; None stands for any words, such as those from a pattern or input."""


class CommandCall(msgspec.Struct, frozen=True):
    """Command of a line, and the commands that it starts."""

    words: CommandWords
    exact: bool
    """Whether it is exactly its words, and the line just this command: no pattern, no redirection,
    no quotes around its name."""
    inner: tuple[CommandWords, ...] = ()
    """The commands that it starts, directly and indirectly."""
    unknown: str | None = None
    """Why it is uncertain what it starts."""


def commands_of_line(line: str) -> list[CommandCall]:
    """Return the commands of a shell line.

    Raises:
        NotSimpleError: The commands cannot be determined.
    """
    one_line = "\n" not in line.strip("\n")
    return [
        _command_call(
            _known_words(plain.words),
            exact=one_line and not plain.redirections and not plain.words[0].quoted,
            unknown=_code_uncertainty([each.text for each in plain.words]),
        )
        for plain in _plain_commands(line)
    ]


def command_of_argv(argv: Sequence[str]) -> CommandCall:
    """Return the command of an argv, in which no shell expands a word.

    Raises:
        NotSimpleError: The argv is empty.
    """
    if not argv:
        raise NotSimpleError("it contains no command")
    return _command_call(tuple(argv), exact=True)


def _plain_commands(line: str) -> list[SimpleCommand]:
    if len(line) > LONGEST:
        raise NotSimpleError(f"it has more than {LONGEST} characters")
    if found := _UNCERTAIN.search(line):
        raise NotSimpleError(f"it contains the character {found[0]!a}")
    return [each for each in read_script(line) if isinstance(each, SimpleCommand) and each.words]


def _known_words(words: Sequence[ShellWord]) -> CommandWords:
    return tuple(None if each.glob or _has_braces(each) else each.text for each in words)


def _has_braces(word: ShellWord) -> bool:
    return "{" in word.raw and word.raw != "{}"


def _command_call(words: CommandWords, *, exact: bool, unknown: str | None = None) -> CommandCall:
    found: list[CommandWords] = []
    perhaps: list[CommandWords] = []
    waiting = [words]
    try:
        while waiting:
            command = waiting.pop()
            inner = _inner_commands(command)
            found += inner
            waiting += inner
            run = _runner_commands(command)
            perhaps += run
            if len(perhaps) > MOST_ARGUMENTS:
                raise NotSimpleError(f"it may start more than {MOST_ARGUMENTS} commands")
            waiting += [
                each
                for each in run
                if _program_name(each) in _UNWRAPPED_COMMANDS or _has_code(each)
            ]
            if len(found) > MOST:
                raise NotSimpleError(f"it starts more than {MOST} commands")
    except NotSimpleError as error:
        unknown = str(error)
    return CommandCall(
        words,
        exact and None not in words and not _expands_subscript(words),
        (*found, *perhaps),
        unknown,
    )


def _runner_commands(words: CommandWords) -> list[CommandWords]:
    """Return the commands that a runner (`npx`, `uv run`) may start: every end of its words."""
    name = _program_name(words)
    if name not in RUNNERS:
        return []
    ends = runner_command_indexes(name, [each or "" for each in words])[: MOST_ARGUMENTS + 1]
    return [_command_at(at, words) for at in ends if words[at] is not None]


def _command_at(at: int, words: CommandWords) -> CommandWords:
    end = at + BEGINNING
    return words[at:end] if end >= len(words) else (*words[at:end], None)


def _code_uncertainty(words: Sequence[str]) -> str | None:
    """Return why it is uncertain what a command with code in its arguments does."""
    name = basename(words[0]).lower()
    argument = find_code_argument(name, words)
    if argument is None:
        return None
    return f"cannot determine what {name} does for {argument or 'the code that it reads'}"


def _require_no_code(words: Sequence[str]) -> None:
    if (why := _code_uncertainty(words)) is not None:
        raise NotSimpleError(why)


def _has_code(words: CommandWords) -> bool:
    """Whether a command that a runner may start has code in its arguments."""
    return bool(
        find_code_argument(_program_name(words), ["*" if each is None else each for each in words])
    )


def _program_name(words: CommandWords) -> str:
    return basename(words[0] or "").lower()


def _expands_subscript(words: CommandWords) -> bool:
    """Whether a built-in expands a subscript in its arguments, quoted or not."""
    return words[0] in _NAMES_VARIABLES and any(
        each is not None and _SUBSCRIPT.search(each) for each in words
    )


def _inner_commands(words: CommandWords) -> list[CommandWords]:
    """Return the commands that a command's arguments start.

    Raises:
        NotSimpleError: The commands cannot be determined.
    """
    first = words[0]
    if first is None or not _NAME.fullmatch(first):
        raise NotSimpleError(f"{first or 'a pattern'} may be any command")
    name = basename(first).lower()  # a file system may ignore case
    variant = _VARIANT.fullmatch(name)  # bash.exe, busybox-static
    if (
        not name
        or is_opaque_command(name)
        or (name in RESERVED and name not in PREFIX_COMMANDS)
        or name in MULTI_CALL | _BUILTINS
        or (variant is not None and variant[1] in SHELLS | MULTI_CALL)
    ):
        raise NotSimpleError(f"cannot determine what {first} starts")
    known = [each for each in words if each is not None]
    if _expands_subscript(words):
        raise NotSimpleError(f"cannot determine what {name} expands")
    _require_no_code(["*" if each is None else each for each in words])
    if name not in LAUNCHER_COMMANDS and name not in LAUNCH_ARGUMENTS:
        return []
    if len(known) < len(words):
        raise NotSimpleError(f"the arguments of {name} are unknown and may be a command")
    if (argument := launch_argument({name}, known)) is not None:
        raise NotSimpleError(f"cannot determine what {name} starts for {argument}")
    if name in SHELLS:
        script = known[shell_script_index(name, known, login=True)]
        plain = _plain_commands(script)
        for each in plain:
            _require_no_code([word.text for word in each.words])
        return [_known_words(each.words) for each in plain]
    if name == "find":
        return [_find_commands(known[begin:end]) for begin, end in find_command_ranges(known)]
    return _prefixed_command(name, known) if name in PREFIX_COMMANDS else []


def _find_commands(words: list[str]) -> CommandWords:
    """Return the commands that `find` starts; `{}` is an unknown path."""
    if not words:
        raise NotSimpleError("find has no command")
    if (basename(words[0]) in LAUNCHER_COMMANDS or basename(words[0]) in LAUNCH_ARGUMENTS) and any(
        "{}" in each for each in words
    ):
        raise NotSimpleError(f"cannot determine what {words[0]} does with the files found")
    return tuple(None if "{}" in each else each for each in words)


def _prefixed_command(name: str, words: list[str]) -> list[CommandWords]:
    at = PREFIX_COMMANDS[name].inner(name, words)
    if at is None:
        return []
    inner = words[at:]
    if "=" in inner[0]:
        raise NotSimpleError(f"cannot determine the files found once {inner[0]} is set")
    if name != "xargs":
        return [tuple(inner)]
    if basename(inner[0]) in LAUNCHER_COMMANDS or basename(inner[0]) in LAUNCH_ARGUMENTS:
        raise NotSimpleError(f"cannot determine the arguments that {inner[0]} gets from xargs")
    return [(*inner, None)]
