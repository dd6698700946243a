"""Programs that start the program they are told, and how each of them is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr_adapters.shell.words import NotPlainError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Wrapper(msgspec.Struct, frozen=True):
    """How one of them is told: its flags, its options with a value, and what comes before."""

    flags: str = ""
    valued: str = ""
    positional: int = 0
    numbers: bool = False
    """Whether `-5` is an option."""

    def inner(self, name: str, words: Sequence[str]) -> int | None:
        """Return where the command begins that it would start; None if it starts none.

        Raises:
            NotPlainError: That cannot be told for certain.
        """
        flags, valued = self.flags.split(), self.valued.split()
        at, positional = 1, self.positional
        while at < len(words):
            word = words[at]
            if word == "--":
                at += 1
                break
            if not word.startswith("-") or word == "-":
                break
            if word in valued:
                at += 2
            elif word in flags or _carries_value(word, valued) or self._is_number(word):
                at += 1
            else:
                raise NotPlainError(f"what {name} does with {word} is not known here")
        at += positional
        return at if at < len(words) else None

    def _is_number(self, word: str) -> bool:
        return self.numbers and word[1:].lstrip("-+").isdecimal()


def _carries_value(word: str, valued: Sequence[str]) -> bool:
    name, equals, _ = word.partition("=")
    if word.startswith("--"):
        return bool(equals) and name in valued
    return word[:2] in valued and len(word) > 2


WRAPPERS: Final = {
    "env": Wrapper("-i -0 -v --ignore-environment --null --debug", "-u --unset"),
    "nice": Wrapper("", "-n --adjustment", numbers=True),
    "nohup": Wrapper(),
    "setsid": Wrapper("-c -f -w --ctty --fork --wait"),
    "stdbuf": Wrapper("", "-i -o -e --input --output --error"),
    "ionice": Wrapper("-t --ignore", "-c -n --class --classdata"),
    "chrt": Wrapper("-b -f -i -o -r -R", positional=1),
    "taskset": Wrapper("-a -c --all-tasks --cpu-list", positional=1),
    "time": Wrapper("-p -v -a", "-f -o --format --output"),
    "timeout": Wrapper(
        "-v --foreground --preserve-status --verbose",
        "-k -s --kill-after --signal",
        positional=1,
    ),
    "xargs": Wrapper(
        "-0 -r -t -x --null --no-run-if-empty --verbose --exit",
        "-n -P -L -s -d --max-args --max-procs --max-lines --max-chars --delimiter",
    ),
}
SHELLS: Final = frozenset("sh ash bash dash ksh ksh93 mksh lksh rbash yash zsh".split())
_SHELL_FLAGS: Final = frozenset("ceufx")

OPAQUE: Final = frozenset(
    "at batch builtin bwrap capsh catatonit catchsegv cgexec chpst chroot chronic command coproc "
    "cpulimit crontab csh daemonize dbus-launch dbus-run-session doas dtach dumb-init eatmydata "
    "entr eval exec expect faketime fakechroot fakeroot firejail fish flock gdb gosu hyperfine "
    "i386 ifne linux32 linux64 ltrace newgrp nsenter numactl parallel perf pkexec prlimit proot "
    "proxychains proxychains4 pwsh rlwrap rsh runcon runuser screen script setarch setpriv sg "
    "socat softlimit ssh start-stop-daemon strace su su-exec sudo systemd-run tcsh tini tmux "
    "torsocks trickle unbuffer unshare valgrind watch x86_64 xvfb-run".split()
)
"""They start others, too, and in ways that are not known here."""
MULTI_CALL: Final = frozenset({"busybox", "toybox", "coreutils"})
"""One file for many programs: which it is depends on the name it is called by."""
KNOWN: Final = frozenset({*WRAPPERS, *SHELLS, *OPAQUE, "find"})


def is_opaque(name: str) -> bool:
    """Say whether what it would start cannot be told."""
    return name in OPAQUE or name.startswith(("ld-linux", "ld-musl", "ld.so"))


def script_of(name: str, words: Sequence[str]) -> int:
    """Return where the script is in a call of a shell.

    Raises:
        NotPlainError: It gets its commands from elsewhere, or has options that change them.
    """
    for at, word in enumerate(words[1:], 1):
        letters = word[1:]
        if not word.startswith("-") or not letters or not set(letters) <= _SHELL_FLAGS:
            break
        if "c" in letters and at + 1 < len(words):
            return at + 1
    raise NotPlainError(f"what {name} would run cannot be told: only -c is understood")


def found_by(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where the commands begin and end that a call of find would start."""
    spans: list[tuple[int, int]] = []
    at = 1
    while at < len(words):
        if words[at] in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = at + 1
            while end < len(words) and not _ends_command(words[end - 1], words[end]):
                end += 1
            spans.append((at + 1, end))
            at = end
        at += 1
    return spans


def _ends_command(before: str, word: str) -> bool:
    return word == ";" or (before, word) == ("{}", "+")
