"""The verb `schema`: print the JSON Schema of jobs, events, results and options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from sessionmgr.adapter import find_adapter
from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.parser import one_of
from sessionmgr.cli.terminal.stdout import print_line
from sessionmgr.field_docs import describe
from sessionmgr.model import DIALECT, KnownEvent, RunResult, Support, event_schema, result_schema

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from sessionmgr.adapter import ProviderAdapter
    from sessionmgr.model import Json

HELP: Final = """\
Print a JSON Schema (2020-12):

  event             event, as stored and as printed by events --json
  job               line of a jobs file
  result            result of a run
  options PROVIDER  options of a provider
  output PROVIDER   result of a run of a provider"""

OF_ALL: Final = ("event", "job", "result")
OF_ONE: Final = ("options", "output")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name of the schema."""
    names = (*OF_ALL, *OF_ONE)
    parser.add_argument(
        "what",
        type=one_of("schema", names),
        metavar="WHAT",
        help="event, job, result, options or output",
    )
    parser.add_argument(
        "of", nargs="?", metavar="PROVIDER", help="provider, for options and output"
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema and return the exit code."""
    if args.what in OF_ONE and args.of is None:
        raise CommandLineInvalid(
            f"schema: {args.what} needs a provider: sessionmgr schema {args.what} PROVIDER"
        )
    if args.what in OF_ALL and args.of is not None:
        raise CommandLineInvalid(f"schema: {args.what} takes no provider, but got {args.of!r}")
    schema = _schema(args.what, args.of, args.configuration.agents)
    print_line(json.dumps(schema, indent=None if args.json else 2))
    return 0


def _schema(what: str, provider: str | None, agents: Path | None) -> dict[str, Json]:
    from sessionmgr.batch import Job

    of: Any
    match what:
        case "event":
            schema, of = event_schema(), KnownEvent
        case "result":
            schema, of = result_schema(), RunResult
        case "job":
            schema, of = _job_schema(), Job
        case "options":
            adapter = find_adapter(provider or "", agents=agents)
            schema, of = _options_schema(adapter), adapter.options
        case _:
            schema, of = _output_schema(find_adapter(provider or "", agents=agents)), RunResult
    describe(schema, of)
    return schema


def _job_schema() -> dict[str, Json]:
    from sessionmgr.batch import DURATIONS, Job
    from sessionmgr.model import PATTERN

    made = msgspec.json.schema(Job)
    properties: dict[str, dict[str, Any]] = made["$defs"]["Job"]["properties"]
    for name in DURATIONS:  # files may contain them with a unit
        properties[name]["anyOf"].append({"type": "string", "pattern": PATTERN})
    return {"$schema": DIALECT, "title": "A sessionmgr job", **made}


def _options_schema(adapter: type[ProviderAdapter]) -> dict[str, Json]:
    (made,), parts = msgspec.json.schema_components(
        [adapter.options], ref_template="#/$defs/{name}", schema_hook=_of_no_json
    )
    made["$defs"] = parts
    return {"$schema": DIALECT, "title": f"Options of {adapter.name}", **made}


def _of_no_json(kind: type) -> dict[str, Any]:
    """Return the schema of a value that only Python code can pass, such as a function."""
    del kind
    return {"not": {}, "description": "an object of Python: for programs only"}


def _output_schema(adapter: type[ProviderAdapter]) -> dict[str, Json]:
    """Return the schema of a result, without the fields that this provider never reports."""
    schema = result_schema()
    schema["title"] = f"A result of {adapter.name}"
    properties: dict[str, Any] = cast("Any", schema)["$defs"]["RunResult"]["properties"]
    properties["provider"] = {"const": adapter.name}
    can = adapter.capabilities.support
    if can("structured_output") is Support.UNSUPPORTED:
        properties["structured"] = {"const": None}
    if can("images_out") is Support.UNSUPPORTED:
        properties["images"] = {"type": "array", "maxItems": 0}
    return schema
