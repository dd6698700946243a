"""A script that is no more than plain commands, and how it is written anew.

Only such a script can be held against lists of commands. What was checked is what runs: the shell
is given the text that is made here, in which every word is quoted and every command is a path.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from sessionmgr.adapter.kit.command_line.tokenizer import NotPlainError, Operator, Word, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

JOINTS: Final = frozenset({";", "&", "&&", "||", "|", "\n"})
_REDIRECTIONS: Final = frozenset({"<", ">", ">>", ">|", "<>", ">&", "<&"})
RESERVED: Final = frozenset(
    "! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until "
    "while".split()
)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=")
_PLAIN_GLOB: Final = re.compile(r"[\w./*?@%+=:,\[\]!^-]+", re.ASCII)


class Redirection(msgspec.Struct, frozen=True):
    """From where a command reads, or where it writes."""

    number: str
    operator: str
    target: Word

    def written(self) -> str:
        """Return it as a shell reads it."""
        return f"{self.number}{self.operator}{written(self.target)}"


class Plain(msgspec.Struct, frozen=True):
    """One command with its redirections."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...] = ()


Script: TypeAlias = list[Plain | str]
"""Commands, and what stands between them."""


def read_script(text: str) -> Script:
    """Return the plain commands of a script, and what joins them.

    Raises:
        NotPlainError: It is more than that.
    """
    script: Script = []
    words: list[Word] = []
    redirections: list[Redirection] = []
    stream = iter(_paired(tokens(text)))
    for token in stream:
        if isinstance(token, Redirection):
            redirections.append(token)
        elif isinstance(token, Word):
            words.append(token)
        else:
            _close(script, words, redirections)
            script.append(token.text)
    _close(script, words, redirections)
    if not any(isinstance(each, Plain) for each in script):
        raise NotPlainError("it holds no command")
    return script


def written(word: Word) -> str:
    """Return a word as a shell reads it: quoted, unless it asks for files of such names.

    Raises:
        NotPlainError: It asks for files, and is partly quoted.
    """
    if not word.glob:
        return shlex.quote(word.text)
    if not _PLAIN_GLOB.fullmatch(word.raw):
        raise NotPlainError(f"{word.raw} is a pattern with quotes or unusual characters in it")
    return word.raw


def _paired(found: list[Word | Operator]) -> Iterator[Word | Operator | Redirection]:
    """Join each redirection with its target, and with the number before it."""
    at = 0
    while at < len(found):
        token = found[at]
        after = found[at + 1] if at + 1 < len(found) else None
        number = ""
        if isinstance(token, Word) and token.raw.isdecimal() and _redirects(after, joined=True):
            number, at = token.text, at + 1
            token, after = found[at], (found[at + 1] if at + 1 < len(found) else None)
        if isinstance(token, Word):
            yield token
            at += 1
        elif token.text in _REDIRECTIONS:
            yield _redirection(number, token.text, after)
            at += 2
        elif token.text in JOINTS:
            yield token
            at += 1
        else:
            raise NotPlainError(f"it holds {token.text}")


def _redirects(token: Word | Operator | None, *, joined: bool) -> bool:
    return isinstance(token, Operator) and token.text in _REDIRECTIONS and token.joined is joined


def _redirection(number: str, operator: str, target: Word | Operator | None) -> Redirection:
    if not isinstance(target, Word) or target.glob:
        raise NotPlainError(f"{operator} wants the name of one file after it")
    if operator in {">&", "<&"} and not (target.raw.isdecimal() or target.raw == "-"):
        raise NotPlainError(f"{operator} wants a number after it")
    return Redirection(number, operator, target)


def _close(script: Script, words: list[Word], redirections: list[Redirection]) -> None:
    if words:
        first = words[0]
        if not first.quoted and first.text in RESERVED:
            raise NotPlainError(f"it holds the reserved word {first.text}")
        if _ASSIGNMENT.match(first.raw):
            raise NotPlainError(f"{first.raw} changes what the commands find")
        if first.glob:
            raise NotPlainError(f"{first.raw} may be any command")
    if words or redirections:
        script.append(Plain(tuple(words), tuple(redirections)))
    words.clear()
    redirections.clear()
