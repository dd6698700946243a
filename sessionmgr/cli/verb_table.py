"""The verbs of the command line by name; the module of a verb is imported on use.

Such a module has `HELP` (the text of `--help` above the arguments), `add_arguments(parser)` and
`run(args) -> int`, which returns the exit code. `args.configuration` contains the settings from
flags, environment and files (`sessionmgr.cli.config.configuration`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    import argparse


class Verb(NamedTuple):
    """A verb: its name, its module and its line in `--help`."""

    name: str
    module: str
    summary: str


class VerbModule(Protocol):
    """Contents of a verb's module."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the verb to those that all verbs have."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Run the verb, and return the exit code."""
        ...


VERBS: Final = {
    verb.name: verb
    for verb in (
        Verb("run", "run", "run one prompt and print what happens"),
        Verb("batch", "batch", "run many jobs; repeat the command to continue"),
        Verb("rehearse", "rehearse", "run a batch with real agents and a scripted model"),
        Verb("sessions", "sessions", "list the stored sessions"),
        Verb("batches", "batches", "list batches, and which of them are running"),
        Verb("status", "status", "show the progress of a batch, also live (--follow)"),
        Verb("watch", "watch", "show a run of another terminal live"),
        Verb("show", "show", "show a session, or a run with its result"),
        Verb("events", "events", "print the events of a run, also live (--follow)"),
        Verb("export", "export", "print a session with its runs and events as JSON lines"),
        Verb("costs", "costs", "sum tokens and costs by session, job, batch, model, day, …"),
        Verb("cancel", "cancel", "end a run, or all runs of a session"),
        Verb("pause", "pause", "stop a run so that it can be resumed"),
        Verb("resume", "resume", "continue a run in its agent's own session"),
        Verb("append", "append", "send a message to an active run"),
        Verb("questions", "questions", "list the open approval requests"),
        Verb("approve", "approve", "answer an approval request of a run"),
        Verb("acp", "acp", "serve a provider to an editor or another ACP client"),
        Verb("adapters", "adapters", "list the installed providers and their capabilities"),
        Verb("doctor", "doctor", "check the installation and say what to fix"),
        Verb("trust", "trust", "use all settings of a project's own sessionmgr.toml"),
        Verb("schema", "schema", "print the JSON Schema of jobs, events, results, options"),
        Verb("prune", "prune", "delete streamed pieces of old runs, or old sessions"),
        Verb("model", "model", "serve a scripted model to agents, at no cost"),
        Verb("completion", "completion", "print completions for bash, zsh or fish"),
        Verb("demo", "demo", "run a demonstration (needs no agent)"),
    )
}


def load_verb(verb: Verb) -> VerbModule:
    """Import the verb's module."""
    from importlib import import_module

    return cast("VerbModule", import_module(f"sessionmgr.cli.verbs.{verb.module}"))
