"""Programs that run code, or start others, for some of their arguments.

The code itself is not analyzed. Scripts in files and modules (`python x.py`, `python -m x`) are not
detected at all.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Interpreter(msgspec.Struct, frozen=True):
    """Options of an interpreter that matter before its script; letters may be bundled."""

    code: str
    """Letters of options with code."""
    long: str = ""
    """Long options with code."""
    valued: str = ""
    """Letters of options with a value: the rest of the word, or the next word."""
    attached: str = ""
    """Letters of options whose value is the rest of the word, even if that is empty."""
    long_valued: str = ""
    file: str = ""
    """Letters of options with a script or module."""
    informing: str = ""
    """Letters of options that only print something."""
    words: str = ""
    """First arguments that are followed by code."""

    def code_in(self, words: Sequence[str]) -> str | None:
        """Return the first argument with code, "" for code from stdin; None if there is none."""
        at, informs = 1, False
        while at < len(words):
            word = words[at]
            if word == "-" or not word.startswith("-"):
                return None if word != "-" and word not in self.words.split() else word
            at += 1
            if word.startswith("--"):
                name, equals, _ = word.partition("=")
                if name in self.long.split():
                    return word
                informs = informs or name in _INFORMING
                at += not equals and name in self.long_valued.split()
                if word == "--":
                    return None if at < len(words) else ""
                continue
            for index, letter in enumerate(word[1:], 2):
                if letter in self.code:
                    return word
                if letter in self.file:
                    return None
                informs = informs or letter in self.informing
                if letter in self.valued:
                    at += index == len(word)
                if letter in self.valued + self.attached:
                    break
        return None if informs else ""


_NODE: Final = "--require --import --loader --experimental-loader --conditions --env-file --title"
_PYTHON: Final = Interpreter("c", valued="WX", file="m", informing="Vh?")
_PERL: Final = Interpreter("eE", valued="I", attached="iMmFxDdC", informing="vV")
_RUBY: Final = Interpreter("e", valued="IrCE", attached="FKxTWi", informing="vh")
_LUA: Final = Interpreter("e", valued="lj", informing="v")
_JS: Final = Interpreter("ep", "--eval --print", "rC", long_valued=_NODE, informing="vhc")
_INFORMING: Final = frozenset(
    "--check --completion-bash --help --ini --run --test --v8-options --version".split()
)
"""Long options with which an interpreter reads no code from stdin."""
INTERPRETERS: Final = {
    **dict.fromkeys("python pypy".split(), _PYTHON),
    **dict.fromkeys("perl".split(), _PERL),
    **dict.fromkeys("ruby jruby".split(), _RUBY),
    **dict.fromkeys("lua luajit".split(), _LUA),
    **dict.fromkeys("node nodejs".split(), _JS),
    "bun": msgspec.structs.replace(_JS, informing="vh"),
    "deno": Interpreter("", words="eval", informing="Vh"),
    "julia": Interpreter("eE", "--eval --print", "Lp", informing="vh"),
    "php": Interpreter(
        "rRBE",
        "--run --process-code --process-begin --process-end",
        valued="cdzt",
        file="fFS",
        informing="vimh",
    ),
    "rscript": Interpreter("e"),
}
_VERSION: Final = re.compile(r"[\d.]+\Z")
# A pipe to or from a command, or a call of one. `print` precedes each pipe to a command.
_AWK_STARTS: Final = re.compile(
    r"\bsystem\s*\(|\|&?\s*getline\b|\bprintf?\b[^;{}\n]*?(?<!\|)\|(?!\|)"
)
_AWKS: Final = frozenset("awk gawk mawk nawk original-awk".split())


def find_code_argument(name: str, words: Sequence[str]) -> str | None:
    """Return the argument for which a program runs code or starts others; None if there is none.

    "" stands for code that an interpreter reads from stdin.
    """
    if name == "git":
        return _git_launch_argument(words)
    if name in _AWKS:
        return next((each for each in words[1:] if _AWK_STARTS.search(each)), None)
    interpreter = INTERPRETERS.get(name) or INTERPRETERS.get(_VERSION.sub("", name))
    return None if interpreter is None else interpreter.code_in(words)


# --- git -----------------------------------------------------------------------------------------

GIT_VALUED: Final = frozenset(
    ("-C", "--attr-source", "--git-dir", "--namespace", "--super-prefix", "--work-tree")
)
"""Options of git itself that take a value."""
_SECTIONS: Final = frozenset(
    "alias browser core credential diff difftool filter gpg guitool include includeif "
    "interactive man merge mergetool pager protocol receive remote sendemail sequence ssh "
    "submodule trailer uploadpack web".split()
)
"""Sections of git's configuration with settings that name programs."""
_KEY: Final = re.compile(r"([A-Za-z]+)\.[^=]+")
_HARMLESS_VALUE: Final = re.compile(r"(?:|cat|true|false|on|off|yes|no|\d+)\Z", re.IGNORECASE)
_HARMLESS: Final = frozenset(
    "core.abbrev core.autocrlf core.bare core.commentchar core.eol core.filemode "
    "core.ignorecase core.logallrefupdates core.longpaths core.precomposeunicode "
    "core.quotepath core.safecrlf core.sparsecheckout core.symlinks core.whitespace "
    "diff.algorithm diff.colormoved diff.context diff.mnemonicprefix diff.noprefix diff.renames "
    "diff.renamelimit merge.conflictstyle merge.ff merge.renames submodule.recurse".split()
)


class _GitLaunchOptions(msgspec.Struct, frozen=True):
    """Options by which a git command starts a program; git accepts their prefixes."""

    letters: str = ""
    long: str = ""

    def found(self, words: Sequence[str]) -> str | None:
        for word in words:
            name = word.partition("=")[0]
            if word == "--":
                return None
            if word.startswith("--"):
                if len(name) > 3 and any(each.startswith(name) for each in self.long.split()):
                    return word
            elif word.startswith("-") and not set(self.letters).isdisjoint(word):
                return word
        return None


_GIT: Final = {
    "clone": _GitLaunchOptions("uc", "--upload-pack --config"),
    "difftool": _GitLaunchOptions("x", "--extcmd"),
    "fetch": _GitLaunchOptions("", "--upload-pack"),
    "fetch-pack": _GitLaunchOptions("", "--upload-pack --exec"),
    "grep": _GitLaunchOptions("O", "--open-files-in-pager"),
    "ls-remote": _GitLaunchOptions("", "--upload-pack --exec"),
    "pull": _GitLaunchOptions("", "--upload-pack"),
    "push": _GitLaunchOptions("", "--receive-pack --exec"),
    "rebase": _GitLaunchOptions("x", "--exec"),
    "send-pack": _GitLaunchOptions("", "--receive-pack --exec"),
}


def _git_launch_argument(words: Sequence[str]) -> str | None:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        name, equals, value = word.partition("=")
        if name == "--exec-path" and equals:
            return word
        if name == "--config-env":
            setting = value or "".join(words[at + 1 : at + 2])
            if _names_program(setting.partition("=")[0]):
                return word
        if word.startswith("-c"):
            key, _, value = (word[2:] or "".join(words[at + 1 : at + 2])).partition("=")
            if _names_program(key) and not _HARMLESS_VALUE.match(value):
                return word
        at += 2 if word in GIT_VALUED | {"-c", "--config-env"} else 1
    command, rest = "".join(words[at : at + 1]), words[at + 1 :]
    if command == "filter-branch":
        return command
    if command == "submodule" and "foreach" in rest:  # one word is a line for a shell
        return next((each for each in rest if len(each.split()) > 1), None)
    if command == "config":
        return _git_config_launches(rest)
    return _GIT[command].found(rest) if command in _GIT else None


def _git_config_launches(words: Sequence[str]) -> str | None:
    plain = [each for each in words if not each.startswith("-")]
    for key, value in pairwise(plain):
        if _names_program(key) and not _HARMLESS_VALUE.match(value):
            return key
    return None


def _names_program(key: str) -> bool:
    found = _KEY.match(key)
    is_known = found is not None and found[1].lower() in _SECTIONS
    return is_known and key.lower() not in _HARMLESS
