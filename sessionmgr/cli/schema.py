"""The verb `schema`: JSON Schema of what is read, stored and printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.output import say
from sessionmgr.cli.parser import one_of
from sessionmgr.model.schema import event_schema, result_schema

if TYPE_CHECKING:
    import argparse

HELP: Final = "Print the JSON Schema (2020-12) of what is stored and printed."

SCHEMAS: Final = {"event": event_schema, "result": result_schema}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the name of what is to be described."""
    parser.add_argument(
        "name",
        type=one_of("schema", list(SCHEMAS)),
        metavar="WHAT",
        help=f"what to describe: {', '.join(SCHEMAS)}",
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema and return the exit code."""
    say(json.dumps(SCHEMAS[args.name](), indent=2))
    return 0
