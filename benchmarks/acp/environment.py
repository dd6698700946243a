"""The agents of these contestants: one that answers at once, and a real one."""

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.agent_setup import HI, INSTALL, SERVED_BY, long_text, model_verb, program
from benchmarks.effort import Effort

REAL: Final = "opencode"


def warm_turns(effort: Effort, *, real: bool) -> int:
    """Return how many turns are timed."""
    return effort.repeats(30) if real else effort.population(200)


@dataclass(frozen=True, slots=True)
class AcpSetup:
    """An agent's command, its working directory and its environment."""

    command: list[str]
    work: Path
    env: dict[str, str]
    is_real: bool

    def prompt(self, pieces: int) -> str:
        """Return a prompt whose answer has so many pieces."""
        if self.is_real:
            return HI if pieces == 1 else long_text(pieces)
        return str(pieces)


@contextmanager
def acp_setup(*, real: bool) -> Generator[AcpSetup]:
    """Create a directory for the agent and, if it is the real one, serve its model."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        work = root / "work"
        work.mkdir()
        if not real:
            python = os.environ.get(SERVED_BY, sys.executable)
            agent = [python, "-S", str(Path(__file__).with_name("fast_agent.py"))]
            yield AcpSetup(
                agent, work, {"PATH": os.environ["PATH"], "HOME": directory}, is_real=False
            )
            return
        found = program(REAL)
        if found is None:
            sys.exit(f"there is no {REAL}: {INSTALL}")
        arguments = ("--agent", REAL, "--directory", str(root))
        with model_verb(root / "server", *arguments) as said:
            env: dict[str, str] = said["agents"][REAL]
            yield AcpSetup([str(found), "acp"], work, env, is_real=True)
