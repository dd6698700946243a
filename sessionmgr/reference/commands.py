"""Sections about the command line: commands, settings, environment variables, names, exit codes."""

from __future__ import annotations

import argparse
from inspect import signature
from typing import TYPE_CHECKING, Final

from sessionmgr.batch import BatchOptions, Job
from sessionmgr.cli import (
    EXIT_CODES,
    PROGRAM,
    SETTINGS,
    VERBS,
    Configuration,
    Parser,
    add_global_flags,
    load_verb,
)
from sessionmgr.manager import Manager, RunArguments
from sessionmgr.reference.markdown import code, section, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

VARIABLES: Final = {
    "SESSIONMGR_TREE": "Set for child processes: the process trees that contain the process.",
    "XDG_STATE_HOME": "Directory of the store; the default is `~/.local/state`.",
    "XDG_CONFIG_HOME": "Directory of the user's settings; the default is `~/.config`.",
    "NO_COLOR": "Disables colours on a terminal, as does `TERM=dumb`.",
}
"""Environment variables beside those of the settings."""

RUNS: Final = ("run", "batch", "rehearse")
"""Commands that start runs."""

IN_PYTHON: Final = {
    "prompt": "`start(prompt)`",
    "deadline": "`Clocks(deadline=)`",
    "budget_usd": "`Budget(usd=)`",
}
"""Arguments of the library that have another name than the field of a job."""


def commands() -> str:
    """Return the section on the commands and their flags."""
    common = argparse.ArgumentParser(add_help=False)
    add_global_flags(common)
    parts = ["## Commands", "Every command takes these flags:", _flag_table(_actions(common))]
    shared = _shared()
    parts += ["### Flags of runs", f"{_listed(RUNS)} take these flags:"]
    parts.append(_flag_table(each for each in _actions(_parser("run")) if each.dest in shared))
    for verb in VERBS.values():
        actions = list(_actions(_parser(verb.name)))
        takes_shared = shared <= {each.dest for each in actions}
        own = [each for each in actions if not (takes_shared and each.dest in shared)]
        parts += [f"### {PROGRAM} {verb.name}", f"{verb.summary[0].upper()}{verb.summary[1:]}."]
        parts.append(_flag_table(own))
        if takes_shared:
            parts.append("It also takes the [flags of runs](#flags-of-runs).")
    return section(*parts)


def _shared() -> frozenset[str]:
    """Return the names of the flags that all commands for runs have."""
    first, *others = [frozenset(each.dest for each in _actions(_parser(name))) for name in RUNS]
    return first.intersection(*others)


def _listed(names: Sequence[str]) -> str:
    *most, last = map(code, names)
    return f"{', '.join(most)} and {last}"


def _parser(name: str) -> argparse.ArgumentParser:
    parser = Parser(f"{PROGRAM} {name}", "")
    load_verb(VERBS[name]).add_arguments(parser)
    return parser


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (each for each in parser._actions if each.dest != "help")


def _flag_table(actions: Iterable[argparse.Action]) -> str:
    rows = [(code(_typed(each)), _help(each)) for each in actions]
    return table(("argument", "meaning"), rows) if rows else ""


def _typed(action: argparse.Action) -> str:
    word = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return {"?": f"[{word}]", "*": f"[{word} …]", "+": f"{word} …"}.get(str(action.nargs), word)
    flags = ", ".join(action.option_strings)
    return flags if action.nargs == 0 else f"{flags} {word}"


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def settings() -> str:
    """Return the section on settings."""
    rows = [
        (
            code(each.name),
            code(", ".join(each.flags)),
            "" if each.name == "options" else code(each.variable),
            each.help,
        )
        for each in SETTINGS.values()
    ]
    return section(
        "## Settings",
        "Keys of `sessionmgr.toml`. A variable takes precedence over files, a flag over both. "
        "[The page on the command line](cli/README.md#settings) explains which file counts.",
        table(("key", "flag", "variable", "meaning"), rows),
    )


def variables() -> str:
    """Return the section on environment variables."""
    return section(
        "## Environment variables",
        "Besides the variables of the [settings](#settings):",
        table(("variable", "meaning"), [(code(name), text) for name, text in VARIABLES.items()]),
    )


def names() -> str:
    """Return the table of the names of each concept."""
    flags = _flags()
    wanted = [
        *Job.__struct_fields__,
        *(name for name in SETTINGS if name not in Job.__struct_fields__),
    ]
    rows = [
        (
            code(flags.get(name, "")),
            code(name if name in Job.__struct_fields__ else ""),
            code(name if name in Configuration.__struct_fields__ else ""),
            _in_python(name),
        )
        for name in wanted
    ]
    heads = ("flag of `run` and `batch`", "field of a job", "setting", "in Python")
    shown = [[cell or "-" for cell in row] for row in rows if sum(map(bool, row)) > 1]
    what = "One row per thing, by the place in which it is set."
    return section("## Names", what, table(heads, shown))


def _flags() -> dict[str, str]:
    """Return the longest flag of `run` and `batch` for each name of a setting or argument."""
    found: dict[str, str] = {}
    for verb in ("batch", "run"):
        for action in _actions(_parser(verb)):
            if action.option_strings:
                found[action.dest] = max(action.option_strings, key=len)
    return found | {"per_provider": "-n PROVIDER=N"}


def _in_python(name: str) -> str:
    if name in IN_PYTHON:
        return IN_PYTHON[name]
    places = {
        "open_session": signature(Manager.open_session).parameters,
        "start": RunArguments.__annotations__,
        "run_batch": BatchOptions.__annotations__,
    }
    return ", ".join(code(f"{place}({name}=)") for place, known in places.items() if name in known)


def exit_codes() -> str:
    """Return the section on the exit codes of commands."""
    lines = EXIT_CODES.splitlines()[1:]
    rows = [
        (code(number), text) for number, _, text in (line.strip().partition(" ") for line in lines)
    ]
    return section(
        "## Exit codes",
        "Of the command `sessionmgr`. The `exit_code` of a [result](#runresult) is that of the "
        "agent's own process.",
        table(("code", "meaning"), [(number, text.strip()) for number, text in rows]),
    )
