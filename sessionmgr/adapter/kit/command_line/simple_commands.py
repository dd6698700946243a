"""Scripts that consist of plain commands alone, and their rewriting for a shell.

Only such a script can be checked against lists of commands. The shell executes exactly what was
checked: it receives the text that is produced here, in which every word is quoted and every command
is a path.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit.command_line.tokenizer import (
    NotSimpleError,
    ShellOperator,
    ShellWord,
    tokenize,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROL_OPERATORS: Final = frozenset({";", "&", "&&", "||", "|", "\n"})
_REDIRECTIONS: Final = frozenset({"<", ">", ">>", ">|", "<>", ">&", "<&"})
RESERVED: Final = frozenset(
    "! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until "
    "while".split()
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=")
_PLAIN_GLOB: Final = re.compile(r"[\w./*?@%+=:,\[\]!^-]+", re.ASCII)


class Redirection(msgspec.Struct, frozen=True):
    """Redirection: the file from which a command reads, or to which it writes."""

    number: str
    operator: str
    target: ShellWord

    def text(self) -> str:
        """Return the redirection in shell syntax."""
        return f"{self.number}{self.operator}{shell_word(self.target)}"


class SimpleCommand(msgspec.Struct, frozen=True):
    """Command with its redirections."""

    words: tuple[ShellWord, ...]
    redirections: tuple[Redirection, ...] = ()


Script: TypeAlias = list[SimpleCommand | str]
"""Commands, and the operators between them."""


def read_script(text: str) -> Script:
    """Return the plain commands of a script, and the operators between them.

    Raises:
        NotSimpleError: The script contains anything else.
    """
    script: Script = []
    words: list[ShellWord] = []
    redirections: list[Redirection] = []
    stream = iter(_join_redirections(tokenize(text)))
    for token in stream:
        if isinstance(token, Redirection):
            redirections.append(token)
        elif isinstance(token, ShellWord):
            words.append(token)
        else:
            _end_command(script, words, redirections)
            script.append(token.text)
    _end_command(script, words, redirections)
    if not any(isinstance(each, SimpleCommand) for each in script):
        raise NotSimpleError("it contains no command")
    return script


def shell_word(word: ShellWord) -> str:
    """Return a word in shell syntax: quoted, unless it is a file name pattern.

    Raises:
        NotSimpleError: The word is a pattern that is partly quoted.
    """
    if not word.glob:
        return shlex.quote(word.text)
    if not _PLAIN_GLOB.fullmatch(word.raw):
        raise NotSimpleError(f"{word.raw} is a pattern with quotes or unusual characters in it")
    return word.raw


def _join_redirections(
    found: list[ShellWord | ShellOperator],
) -> Iterator[ShellWord | ShellOperator | Redirection]:
    """Join each redirection with its target, and with the number before it."""
    at = 0
    while at < len(found):
        token = found[at]
        after = found[at + 1] if at + 1 < len(found) else None
        number = ""
        if (
            isinstance(token, ShellWord)
            and token.raw.isdecimal()
            and _redirects(after, joined=True)
        ):
            number, at = token.text, at + 1
            token, after = found[at], (found[at + 1] if at + 1 < len(found) else None)
        if isinstance(token, ShellWord):
            yield token
            at += 1
        elif token.text in _REDIRECTIONS:
            yield _redirection(number, token.text, after)
            at += 2
        elif token.text in CONTROL_OPERATORS:
            yield token
            at += 1
        else:
            raise NotSimpleError(f"it contains {token.text}")


def _redirects(token: ShellWord | ShellOperator | None, *, joined: bool) -> bool:
    return (
        isinstance(token, ShellOperator) and token.text in _REDIRECTIONS and token.joined is joined
    )


def _redirection(
    number: str, operator: str, target: ShellWord | ShellOperator | None
) -> Redirection:
    if not isinstance(target, ShellWord) or target.glob:
        raise NotSimpleError(f"{operator} needs one file name after it")
    if operator in {">&", "<&"} and not (target.raw.isdecimal() or target.raw == "-"):
        raise NotSimpleError(f"{operator} needs a number after it")
    return Redirection(number, operator, target)


def _end_command(script: Script, words: list[ShellWord], redirections: list[Redirection]) -> None:
    if words:
        first = words[0]
        if not first.quoted and first.text in RESERVED:
            raise NotSimpleError(f"it contains the reserved word {first.text}")
        if _ASSIGNMENT.match(first.raw):
            raise NotSimpleError(f"{first.raw} changes what the commands find")
        if first.glob:
            raise NotSimpleError(f"{first.raw} may be any command")
    if words or redirections:
        script.append(SimpleCommand(tuple(words), tuple(redirections)))
    words.clear()
    redirections.clear()
