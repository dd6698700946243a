"""Tokenizer that splits a line into words like a POSIX shell: quotes and backslashes only.

In an argv, every other character means itself. In a script, operators separate words, and anything
that a shell would expand is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

BLANKS: Final = " \t"
_ARGV_BLANKS: Final = BLANKS + "\n"
LONGEST: Final = 2 * 1024 * 1024
"""Maximum number of characters of an argv; Linux accepts no more with its usual limits."""
_OPERATOR: Final = re.compile(r"&&|\|\||;;|\|&|&>|<<|>>|>&|<&|>\||<>|[;&|<>()\n]")
_GLOB: Final = re.compile(r"[*?[]")
# A backslash between double quotes escapes only these characters.
_ESCAPABLE: Final = frozenset('$`"\\\n')

# Runs of literal characters are consumed whole: a prompt may have megabytes.
_PLAIN_IN_ARGV: Final = re.compile(r"[^ \t\n'\"\\]+")
_PLAIN_IN_SCRIPT: Final = re.compile(r"[^ \t\n'\"\\;&|<>()$`]+")
_PLAIN_IN_QUOTES: Final = re.compile(r'[^"\\$`]+')
_BLANKS_IN_ARGV: Final = re.compile(r"[ \t\n]+")
_BLANKS_IN_SCRIPT: Final = re.compile(r"[ \t]+")
_SHELL_SYNTAX: Final = re.compile(
    r"&&|\|\||;;|>>|<<|[;&|<>*`]|\$(?:\(|\{|[A-Za-z_]\w*|[0-9@#?$!*-])"
)


class NotSimpleError(ValueError):
    """A script is not just a sequence of commands, or not a script at all."""


class ShellNeededError(NotSimpleError):
    """An argv contains an operator that only a shell understands."""

    def __init__(self, operator: str) -> None:
        named = "a line break between commands" if operator == "\n" else f"the unquoted {operator}"
        super().__init__(
            f"{named} needs a shell, but this prompt runs without one: set the option shell "
            "(--option shell=true), or quote it to pass it to the program literally"
        )
        self.operator = operator


class ShellWord(msgspec.Struct, frozen=True):
    """Word without its quotes; `raw` is its source text."""

    text: str
    raw: str
    glob: bool = False
    """Whether a shell would expand it to file names."""

    @property
    def quoted(self) -> bool:
        """Whether any part of it was quoted: then it is not a reserved word."""
        return self.raw != self.text


class ShellOperator(msgspec.Struct, frozen=True):
    """Operator between words; `joined`: no blank separates it from the word before."""

    text: str
    joined: bool = False


def split_argv(text: str) -> list[str]:
    """Return the words of `text` as an argv.

    Raises:
        NotSimpleError: A quote is not closed.
    """
    return [
        each.text for each in _Tokenizer(text, script=False).read() if isinstance(each, ShellWord)
    ]


def plain_argv(text: str) -> list[str]:
    """Return the words of `text` as an argv, unless a shell would read the text differently.

    Raises:
        ShellNeededError: The text has an unquoted shell operator.
        NotSimpleError: A quote is not closed.
    """
    if len(text) > LONGEST:
        why = f"it has {len(text):,} characters; a command may have at most {LONGEST:,}"
        raise NotSimpleError(f"{why}: put the data into a file and name the file")
    reader = _Tokenizer(text.strip(_ARGV_BLANKS), script=False)
    argv = [each.text for each in reader.read() if isinstance(each, ShellWord)]
    if reader.operator is not None:
        raise ShellNeededError(reader.operator)
    return argv


def tokenize(text: str) -> list[ShellWord | ShellOperator]:
    """Return the words and operators of a script.

    Raises:
        NotSimpleError: The script contains something that a shell would expand.
    """
    return list(_Tokenizer(text, script=True).read())


class _Tokenizer:
    def __init__(self, text: str, *, script: bool) -> None:
        self._text = text
        self._script = script
        self._at = 0
        self._blanks = _BLANKS_IN_SCRIPT if script else _BLANKS_IN_ARGV
        self._plain = _PLAIN_IN_SCRIPT if script else _PLAIN_IN_ARGV
        self.operator: str | None = None
        """The first part of an argv that a shell would interpret."""

    def read(self) -> Iterator[ShellWord | ShellOperator]:
        joined = False
        while self._at < len(self._text):
            if found := self._blanks.match(self._text, self._at):
                if "\n" in found[0]:
                    self._note("\n")
                self._at = found.end()
                joined = False
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._script and (found := _OPERATOR.match(self._text, self._at)):
                self._at = found.end()
                yield ShellOperator(found[0], joined)
                joined = False
            else:
                yield self._word()
                joined = True

    def _word(self) -> ShellWord:
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
                piece = self._run_of(self._plain)
                glob = glob or _GLOB.search(piece) is not None
                if not self._script and (found := _SHELL_SYNTAX.search(piece)):
                    self._note(found[0])
                pieces.append(piece)
        return ShellWord("".join(pieces), self._text[begin : self._at], glob and self._script)

    def _run_of(self, plain: re.Pattern[str]) -> str:
        found = plain.match(self._text, self._at)
        assert found is not None  # the character here is one of them
        self._at = found.end()
        return found[0]

    def _note(self, operator: str) -> None:
        self.operator = self.operator or operator

    def _ends(self) -> bool:
        if self._blanks.match(self._text, self._at):
            return True
        return self._script and _OPERATOR.match(self._text, self._at) is not None

    def _until_quote(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise NotSimpleError("a single quote is not closed")
        inside = self._text[self._at + 1 : end]
        self._at = end + 1
        return inside

    def _in_double_quotes(self) -> str:
        self._at += 1
        pieces: list[str] = []
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == '"':
                self._at += 1
                return "".join(pieces)
            if letter == "\\":
                pieces.append(self._escaped_in_quotes())
            elif letter in "$`":
                self._refuse_expansion(letter, first=False)
                pieces.append(letter)
                self._at += 1
            else:
                pieces.append(self._run_of(_PLAIN_IN_QUOTES))
        raise NotSimpleError("a double quote is not closed")

    def _escaped_in_quotes(self) -> str:
        following = self._text[self._at + 1 : self._at + 2]
        if not following or following not in _ESCAPABLE:
            self._at += 1
            return "\\"
        self._at += 2
        return following if following != "\n" else ""

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
            raise NotSimpleError(f"it contains a {letter} to expand; put it in single quotes")
        if first and letter in "~#":
            raise NotSimpleError(f"a word begins with {letter}; put it in single quotes")
