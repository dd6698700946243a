"""What runs in a contestant's own process: `python -m benchmarks.run_contestant FUNCTION [SIZE]`.

Prints one JSON object, figure by name. Like the contestants' anchors it
needs nothing of ours, so that another interpreter can run it.
"""

import importlib
import json
import sys
from collections.abc import Callable
from typing import cast

from benchmarks.effort import Effort, Figures


def load(function: str) -> Callable[..., Figures]:
    """Import the function that `module:name` names."""
    module, _, name = function.partition(":")
    return cast("Callable[..., Figures]", getattr(importlib.import_module(module), name))


def main(arguments: list[str]) -> None:
    """Run one contestant once and print its figures."""
    effort = Effort(smoke="--smoke" in arguments)
    function, *sizes = (each for each in arguments if each != "--smoke")
    json.dump(load(function)(effort, *map(int, sizes)), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
