"""A line cut into words, as a POSIX shell cuts it: quotes and backslashes, and nothing else.

Read as an argv, every other character means itself. Read as a script, operators are told from
words, and whatever a shell would put something else in the place of is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

BLANKS: Final = " \t"
_OPERATOR: Final = re.compile(r"&&|\|\||;;|\|&|&>|<<|>>|>&|<&|>\||<>|[;&|<>()\n]")
_GLOB: Final = frozenset("*?[")
# What escapes a character between double quotes escapes nothing else there.
_ESCAPABLE: Final = frozenset('$`"\\\n')


class NotPlainError(ValueError):
    """A script that is more than commands one after the other, or no script at all."""


class Word(msgspec.Struct, frozen=True):
    """A word without its quotes; `raw` is how it was written."""

    text: str
    raw: str
    glob: bool = False
    """Whether a shell would look for files of such names."""

    @property
    def quoted(self) -> bool:
        """Whether any part of it was quoted: then it is no reserved word."""
        return self.raw != self.text


class Operator(msgspec.Struct, frozen=True):
    """What stands between words; `joined` says that no blank is between it and the word before."""

    text: str
    joined: bool = False


def split(text: str) -> list[str]:
    """Return the argv that `text` is.

    Raises:
        NotPlainError: A quote is not closed.
    """
    return [each.text for each in _Reader(text, script=False).read() if isinstance(each, Word)]


def tokens(text: str) -> list[Word | Operator]:
    """Return the words and operators of a script.

    Raises:
        NotPlainError: It holds something that a shell would expand.
    """
    return list(_Reader(text, script=True).read())


class _Reader:
    def __init__(self, text: str, *, script: bool) -> None:
        self._text = text
        self._script = script
        self._at = 0
        self._blanks = BLANKS if script else BLANKS + "\n"

    def read(self) -> Iterator[Word | Operator]:
        joined = False
        while self._at < len(self._text):
            if self._text[self._at] in self._blanks:
                self._at += 1
                joined = False
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._script and (found := _OPERATOR.match(self._text, self._at)):
                self._at = found.end()
                yield Operator(found[0], joined)
                joined = False
            else:
                yield self._word()
                joined = True

    def _word(self) -> Word:
        begin = self._at
        pieces: list[str] = []
        glob = False
        while self._at < len(self._text) and not self._ends():
            letter = self._text[self._at]
            if letter == "'":
                pieces.append(self._until_quote())
            elif letter == '"':
                pieces.append(self._in_double_quotes())
            elif letter == "\\":
                pieces.append(self._escaped())
            else:
                self._refuse_expansion(letter, first=self._at == begin)
                glob = glob or letter in _GLOB
                pieces.append(letter)
                self._at += 1
        return Word("".join(pieces), self._text[begin : self._at], glob and self._script)

    def _ends(self) -> bool:
        if self._text[self._at] in self._blanks:
            return True
        return self._script and _OPERATOR.match(self._text, self._at) is not None

    def _until_quote(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise NotPlainError("a single quote is not closed")
        inside = self._text[self._at + 1 : end]
        self._at = end + 1
        return inside

    def _in_double_quotes(self) -> str:
        self._at += 1
        pieces: list[str] = []
        while self._at < len(self._text):
            letter = self._text[self._at]
            following = self._text[self._at + 1 : self._at + 2]
            if letter == '"':
                self._at += 1
                return "".join(pieces)
            if letter == "\\" and following in _ESCAPABLE and following:
                pieces.append(following if following != "\n" else "")
                self._at += 2
                continue
            self._refuse_expansion(letter, first=False)
            pieces.append(letter)
            self._at += 1
        raise NotPlainError("a double quote is not closed")

    def _escaped(self) -> str:
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 1 + len(following)
        if not following:
            return "\\"
        return following if following != "\n" else ""

    def _refuse_expansion(self, letter: str, *, first: bool) -> None:
        if not self._script:
            return
        if letter in "$`":
            raise NotPlainError(f"it holds a {letter} to expand; put it in single quotes")
        if first and letter in "~#":
            raise NotPlainError(f"a word begins with {letter}; put it in single quotes")
