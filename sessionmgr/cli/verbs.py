"""The verbs of the command line, by name; each is a module that is imported when it is asked for.

Such a module has `HELP` (what `--help` says above the arguments), `add_arguments(parser)` and
`run(args) -> int`, whose value is the exit code. `args.configuration` is what the flags, the
environment and the files come to (`sessionmgr.cli.configuration`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import argparse


class Verb(NamedTuple):
    """One line of the table."""

    name: str
    module: str
    summary: str


class VerbModule(Protocol):
    """What the module of a verb holds."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Say which arguments the verb takes, beside the flags that all have."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        ...


VERBS: Final = {
    verb.name: verb
    for verb in (
        Verb("run", "run", "one run, streamed"),
        Verb("batch", "batch", "many runs; the same command again goes on with them"),
        Verb("rehearse", "rehearse", "a batch on real agents, with a script for a model"),
        Verb("sessions", "sessions", "list what is stored"),
        Verb("batches", "batches", "list batches, and which of them run"),
        Verb("status", "status", "one batch, as its own terminal shows it (--follow)"),
        Verb("watch", "watch", "a run of another terminal, as run shows it"),
        Verb("show", "show", "a session or a run, and what became of it"),
        Verb("events", "events", "what happened in it, and what happens now (--follow)"),
        Verb("export", "export", "a session with all its runs and events, as JSON lines"),
        Verb("costs", "costs", "tokens and money, by session, job, batch, model, day, …"),
        Verb("cancel", "cancel", "end a run, or all of a session"),
        Verb("pause", "pause", "stop a run so that it can be resumed"),
        Verb("resume", "resume", "go on with what was paused"),
        Verb("append", "append", "say something to a run that is on"),
        Verb("questions", "questions", "list what runs ask and wait for"),
        Verb("approve", "approve", "answer what a run has asked"),
        Verb("adapters", "adapters", "the providers that are installed, and what they can do"),
        Verb("doctor", "doctor", "whether all is well here, and what to do if not"),
        Verb("trust", "trust", "use all settings of a project's own sessionmgr.toml"),
        Verb("schema", "schema", "the JSON Schema of what is read, stored and printed"),
        Verb("prune", "prune", "drop the streamed pieces of runs that ended long ago"),
        Verb("completion", "completion", "completion for bash, zsh or fish"),
        Verb("demo", "demo", "see it at work (needs nothing)"),
    )
}


def load(verb: Verb) -> VerbModule:
    """Import the verb's module."""
    from importlib import import_module

    return cast("VerbModule", import_module(f"sessionmgr.cli.{verb.module}"))
