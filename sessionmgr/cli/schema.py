"""The verb `schema`: JSON Schema of what is stored and printed."""

import json
from typing import Final

from sessionmgr.cli.output import print_all
from sessionmgr.model.schema import event_schema, result_schema

SCHEMAS: Final = {"event": event_schema, "result": result_schema}


def run(name: str) -> int:
    """Print the schema called `name` and return the exit code."""
    print_all(json.dumps(SCHEMAS[name](), indent=2))
    return 0
