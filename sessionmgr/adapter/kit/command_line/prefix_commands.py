"""Prefix commands: programs that start the program in their arguments, and their syntax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter.kit.command_line.tokenizer import NotSimpleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class PrefixSyntax(msgspec.Struct, frozen=True):
    """Syntax of a prefix command: its flags, its options with a value, and positional arguments."""

    flags: str = ""
    valued: str = ""
    positional: int = 0
    numbers: bool = False
    """Whether `-5` is an option."""

    def inner(self, name: str, words: Sequence[str]) -> int | None:
        """Return the index of the command that it would start; None if it starts none.

        Raises:
            NotSimpleError: The command cannot be determined.
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
                raise NotSimpleError(f"the option {word} of {name} is unknown")
        at += positional
        return at if at < len(words) else None

    def _is_number(self, word: str) -> bool:
        return self.numbers and word[1:].lstrip("-+").isdecimal()


def _carries_value(word: str, valued: Sequence[str]) -> bool:
    name, equals, _ = word.partition("=")
    if word.startswith("--"):
        return bool(equals) and name in valued
    return word[:2] in valued and len(word) > 2


PREFIX_COMMANDS: Final = {
    "env": PrefixSyntax("-i -0 -v --ignore-environment --null --debug", "-u --unset"),
    "nice": PrefixSyntax("", "-n --adjustment", numbers=True),
    "nohup": PrefixSyntax(),
    "setsid": PrefixSyntax("-c -f -w --ctty --fork --wait"),
    "stdbuf": PrefixSyntax("", "-i -o -e --input --output --error"),
    "ionice": PrefixSyntax("-t --ignore", "-c -n --class --classdata"),
    "chrt": PrefixSyntax("-b -f -i -o -r -R", positional=1),
    "taskset": PrefixSyntax("-a -c --all-tasks --cpu-list", positional=1),
    "time": PrefixSyntax("-p -v -a", "-f -o --format --output"),
    "timeout": PrefixSyntax(
        "-v --foreground --preserve-status --verbose",
        "-k -s --kill-after --signal",
        positional=1,
    ),
    "xargs": PrefixSyntax(
        "-0 -r -t -x --null --no-run-if-empty --verbose --exit",
        "-n -P -L -s -d --max-args --max-procs --max-lines --max-chars --delimiter",
    ),
}
SHELLS: Final = frozenset("sh ash bash dash ksh ksh93 mksh lksh rbash yash zsh".split())
_SHELL_FLAGS: Final = frozenset("ceufx")

OPAQUE: Final = frozenset(
    "aa-exec abduco anacron arch asciinema at autoexpect batch bear builtin bwrap caffeinate "
    "capsh catatonit catchsegv ccache cgexec choom chpst chronic chroot clush command "
    "consolehelper coproc coresched cow-shell cpulimit crontab cset csh daemon daemonize "
    "dbus-launch dbus-run-session dchroot detach direnv distcc distrobox-host-exec doas "
    "doasedit dpkg-architecture dsh dtach dumb-init eatmydata entr envdir envuidgid eval exec "
    "execlineb expect fakechroot fakeroot fakeroot-ng fakeroot-sysv fakeroot-tcp faketime "
    "fghack firejail fish flatpak-spawn flock gdb gnome-terminal gosu gpg-agent heaptrack "
    "host-spawn hyperfine i386 i486 i586 i686 icecc ifne keyctl konsole launchctl lckdo "
    "linux32 linux64 lldb logsave ltrace lxc-attach lxc-execute machinectl minijail0 mispipe "
    "mpiexec mpirun newgrp nsenter nsjail numactl operf osascript parallel pdsh pee perf "
    "pexec pgrphack pipesz pkexec powerpc ppc ppc32 ppc64 prlimit proot proxychains "
    "proxychains4 pseudo pwsh rlfe rlwrap rootlesskit rr rsh run-parts run0 runcon runuser "
    "sandbox-exec scan-build schedtool schroot screen script scriptlive sem setarch setlock "
    "setpriv setuidgid sg socat softlimit srun ssh ssh-agent stap start-stop-daemon strace su "
    "su-exec sudo sudoedit supervise systemd-cat systemd-inhibit systemd-nspawn systemd-run "
    "systemd-socket-activate tcpserver tcpsvd tcsh timelimit tini tmux torify torsocks "
    "trace-cmd trickle tsocks ttyrec uclampset uftrace uname26 unbuffer unshare valgrind vipe "
    "watch watchexec winpty x-terminal-emulator x86_64 xinit xterm xvfb-run zrun".split()
)
"""Programs that also start others, but whose syntax this module does not know."""
MULTI_CALL: Final = frozenset({"busybox", "toybox", "coreutils"})
"""Multi-call binaries: the name of the call selects the program."""
LAUNCHER_COMMANDS: Final = frozenset({*PREFIX_COMMANDS, *SHELLS, *OPAQUE, "find"})


RUNNERS: Final = {
    **dict.fromkeys("bunx npx pnpx uvx".split(), ""),
    **dict.fromkeys("hatch pdm pipenv pipx poetry rye uv".split(), "run"),
    **dict.fromkeys("conda devbox doppler mamba micromamba op".split(), "run"),
    **dict.fromkeys("asdf aws-vault bundle nodenv pyenv rbenv".split(), "exec"),
    **dict.fromkeys("bun mise npm pnpm rtx yarn".split(), "dlx exec x"),
    **dict.fromkeys("docker nerdctl podman".split(), "exec run"),
    **dict.fromkeys("fd fdfind".split(), "-x -X --exec --exec-batch"),
    "git": "foreach run",  # submodule foreach, bisect run
    "nix": "-c --command",
}
"""Programs that start what follows one of these words, or what follows their own name."""


def runner_command_indexes(name: str, words: Sequence[str]) -> list[int]:
    """Return the indexes at which a runner's command may begin; its options are not known."""
    after = RUNNERS[name].split()
    begin = next((at for at, word in enumerate(words) if word in after), None) if after else 0
    if begin is None:
        return []
    return [at for at in range(begin + 1, len(words)) if not words[at].startswith("-")]


class LaunchArguments(msgspec.Struct, frozen=True):
    """Arguments that make a program start another one."""

    long: str = ""
    """Long options; GNU programs accept any prefix of one, so prefixes match too."""
    letters: str = ""
    """Letters of short options."""
    words: str = ""
    """Arguments that match with any beginning."""
    bundled: bool = False
    """Whether the first argument may contain option letters without a hyphen."""

    def found(self, words: Sequence[str]) -> str | None:
        """Return the first argument that names, or may name, a program to start."""
        for at, word in enumerate(words[1:]):
            name = word.partition("=")[0]
            if word.startswith("--"):
                if len(name) > 2 and any(each.startswith(name) for each in self.long.split()):
                    return word
            elif word.startswith("-") or (self.bundled and at == 0):
                if not set(self.letters).isdisjoint(word):
                    return word
            elif word and any(each.startswith(word) for each in self.words.split()):
                return word
        return None


LAUNCH_ARGUMENTS: Final = {
    "cpio": LaunchArguments("--rsh-command"),
    "install": LaunchArguments("--strip-program"),
    "ip": LaunchArguments("--batch", "b", "exec"),
    "man": LaunchArguments("--pager --html --browser", "PH"),
    "nc": LaunchArguments("--exec --sh-exec --lua-exec", "ec"),
    "ncat": LaunchArguments("--exec --sh-exec --lua-exec", "ec"),
    "netcat": LaunchArguments("--exec --sh-exec", "ec"),
    "rsync": LaunchArguments("--rsh --rsync-path", "e"),
    "scp": LaunchArguments("", "So"),
    "sftp": LaunchArguments("", "So"),
    "sort": LaunchArguments("--compress-program"),
    "split": LaunchArguments("--filter"),
    "tar": LaunchArguments(
        "--to-command --use-compress-program --checkpoint-action --rsh-command --rmt-command "
        "--info-script --new-volume-script",
        "IF",
        bundled=True,
    ),
    "tcpdump": LaunchArguments("--postrotate-command", "z"),
    "zip": LaunchArguments("--unzip-command", "T"),
}
"""Programs that start another program only if one of their arguments names it."""


def launch_argument(names: Iterable[str], words: Sequence[str]) -> str | None:
    """Return the argument by which one of these programs would start another."""
    for name in LAUNCH_ARGUMENTS.keys() & set(names):
        if (found := LAUNCH_ARGUMENTS[name].found(words)) is not None:
            return found
    return None


def is_opaque_command(name: str) -> bool:
    """Whether it cannot be determined which program a command would start."""
    return name in OPAQUE or name.startswith(("ld-linux", "ld-musl", "ld.so"))


def shell_script_index(name: str, words: Sequence[str], *, login: bool = False) -> int:
    """Return the index of the script in a shell's call; `login` allows reading the user's profile.

    Raises:
        NotSimpleError: The shell reads commands from elsewhere, or its options change them.
    """
    for at, word in enumerate(words[1:], 1):
        letters = word[1:]
        known = _SHELL_FLAGS | {"l"} if login else _SHELL_FLAGS
        if not word.startswith("-") or not letters or not set(letters) <= known:
            break
        if "c" in letters and at + 1 < len(words):
            return at + 1
    raise NotSimpleError(f"cannot determine what {name} would run: only -c is understood")


def find_command_ranges(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the ranges of the commands that a call of find would start."""
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
