"""The verb `completion`: print a script that completes commands, flags and providers in a shell."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, NamedTuple

from sessionmgr.adapter import installed_adapters
from sessionmgr.cli.parser import PROGRAM, Parser, one_of
from sessionmgr.cli.terminal.stdout import print_line
from sessionmgr.cli.verb_table import VERBS, load_verb
from sessionmgr.model import PermissionMode

if TYPE_CHECKING:
    from collections.abc import Callable

HELP: Final = """\
Print the completion of sessionmgr's commands, flags and providers for a shell.

  bash  echo 'source <(sessionmgr completion bash)' >> ~/.bashrc
  zsh   echo 'source <(sessionmgr completion zsh)' >> ~/.zshrc  (after compinit)
  fish  sessionmgr completion fish > ~/.config/fish/completions/sessionmgr.fish"""


class VerbCompletion(NamedTuple):
    """Completions after a verb: flags with their help, and words in place of arguments."""

    flags: dict[str, str]
    arguments: list[str]
    valued: list[str]
    """The flags that take a value."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name of the shell."""
    parser.add_argument(
        "shell",
        type=one_of("shell", list(SHELLS)),
        metavar="SHELL",
        help=f"one of {', '.join(SHELLS)}",
    )


def run(args: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    words = {name: _words(name) for name in VERBS}
    print_line(SHELLS[args.shell](words, installed_adapters()))
    return 0


_ARGUMENTS: Final = {
    "schema": ["event", "job", "result", "options", "output"],
    "completion": ["bash", "zsh", "fish"],
    "approve": ["allow", "deny"],
}


class _FlagCollector(Parser):
    """Parser that lists its flags."""

    def flags(self) -> dict[str, str]:
        """Return each flag and its help."""
        return {
            flag: (action.help or "").replace("%%", "%")
            for action in self._actions
            for flag in action.option_strings
            if action.help != argparse.SUPPRESS
        }

    def flags_with_values(self) -> list[str]:
        """Return the flags that take a value."""
        return [
            flag for action in self._actions for flag in action.option_strings if action.nargs != 0
        ]


def _words(name: str) -> VerbCompletion:
    module = load_verb(VERBS[name])
    parser = _FlagCollector(f"{PROGRAM} {name}", module.HELP)
    module.add_arguments(parser)
    parser.add_global_flags()
    providers = installed_adapters() if name == "adapters" else []
    return VerbCompletion(
        parser.flags(), [*_ARGUMENTS.get(name, []), *providers], parser.flags_with_values()
    )


def _with_files(words: dict[str, VerbCompletion]) -> list[str]:
    """Return the flags whose value is a file, or cannot be completed."""
    valued = {flag for each in words.values() for flag in each.valued}
    return sorted(valued - {"-p", "--provider", "--permission"})


def _bash(words: dict[str, VerbCompletion], providers: list[str]) -> str:
    cases = "\n".join(
        f"        {name}) words={_quoted(' '.join(each.arguments))}"
        f" flags={_quoted(' '.join(each.flags))} ;;"
        for name, each in words.items()
    )
    return f"""\
# Completion of {PROGRAM} for bash: source <({PROGRAM} completion bash)
_{PROGRAM}() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local verb="" each value="" words="" flags="" IFS=$' \\t\\n'
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        if [ "$value" ]; then value=""; continue; fi
        case "$each" in
            --store|--log-file|--capture|--agents) value=1 ;;
            -*) ;;
            *) verb="$each"; break ;;
        esac
    done
    case "$before" in
        -p|--provider) words={_quoted(" ".join(providers))} ;;
        --permission) words={_quoted(" ".join(PermissionMode))} ;;
        {"|".join(_with_files(words))})
            IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$word" || true)); return ;;
        options|output)
            if [ "$verb" = schema ]; then words={_quoted(" ".join(providers))}; fi ;;
        *)
            case "$verb" in
        "") words={_quoted(" ".join(words))} ;;
{cases}
            esac ;;
    esac
    case "$word" in -*) words="$flags" ;; esac
    COMPREPLY=($(compgen -W "$words" -- "$word" || true))
    if [ "${{#COMPREPLY[@]}}" != 0 ]; then return; fi
    IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$word" || true))
}}
complete -o filenames -F _{PROGRAM} {PROGRAM}"""


def _zsh(words: dict[str, VerbCompletion], providers: list[str]) -> str:
    verbs = "\n".join(f"        {_quoted(f'{name}:{VERBS[name].summary}')}" for name in words)
    cases = "\n".join(
        f"        {name}) compadd -- {' '.join([*each.arguments, *each.flags])} ;;"
        for name, each in words.items()
    )
    return f"""\
#compdef {PROGRAM}
# Completion of {PROGRAM} for zsh: source <({PROGRAM} completion zsh)
_{PROGRAM}() {{
    local -a verbs
    local verb="" each
    verbs=(
{verbs}
    )
    for each in ${{words[2,CURRENT-1]}}; do
        case "$each" in -*) ;; *) verb="$each"; break ;; esac
    done
    case "${{words[CURRENT-1]}}" in
        -p|--provider) compadd -- {" ".join(providers)}; return ;;
        --permission) compadd -- {" ".join(PermissionMode)}; return ;;
        {"|".join(_with_files(words))}) _files; return ;;
    esac
    case "$verb" in
        "") _describe command verbs ;;
{cases}
    esac
    _files
}}
compdef _{PROGRAM} {PROGRAM}"""


def _fish(words: dict[str, VerbCompletion], providers: list[str]) -> str:
    lines = [f"# Completion of {PROGRAM} for fish", f"complete -c {PROGRAM} -f"]
    for name, each in words.items():
        summary = _quoted(VERBS[name].summary)
        lines.append(f"complete -c {PROGRAM} -n __fish_use_subcommand -a {name} -d {summary}")
        seen = f"'__fish_seen_subcommand_from {name}'"
        if name in ("batch", "rehearse", "status", "trust"):
            lines.append(f"complete -c {PROGRAM} -n {seen} -F")
        if each.arguments:
            lines.append(f"complete -c {PROGRAM} -n {seen} -a {_quoted(' '.join(each.arguments))}")
        for flag, meaning in each.flags.items():
            spelled = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            if flag in ("-p", "--provider"):
                spelled += f" -x -a {_quoted(' '.join(providers))}"
            if flag == "--permission":
                spelled += f" -x -a {_quoted(' '.join(PermissionMode))}"
            elif flag in each.valued and flag not in ("-p", "--provider"):
                spelled += " -r -F"
            lines.append(f"complete -c {PROGRAM} -n {seen} {spelled} -d {_quoted(meaning)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Quote a word in the way that all three shells read."""
    return "'" + text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}").replace("\n", " ") + "'"


SHELLS: Final[dict[str, Callable[[dict[str, VerbCompletion], list[str]], str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
