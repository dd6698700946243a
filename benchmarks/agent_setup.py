"""The environment of agent contestants: the real program, and a scripted model without cost.

It needs only the standard library, because one contestant has an interpreter of its own. The model
server is a separate process, so that its costs count for no contestant.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

ROOT: Final = Path(__file__).resolve().parent.parent
SERVED_BY: Final = "SESSIONMGR_BENCHMARKS_PYTHON"
"""Environment variable with the interpreter that can run the model server."""
INSTALL: Final = ".ci/agents installs it, or SESSIONMGR_AGENTS says where it is installed"
HI: Final = "hi"
PIECES: Final = 3_000
LAPS: Final = 15
"""Number of turns that are timed to their first event, and of turns that are cancelled."""


def scripted(*moves: dict[str, object]) -> str:
    """Return a prompt that makes the model do these steps."""
    return f"<script>{json.dumps([list(moves)])}</script>"


def long_text(pieces: int) -> str:
    """Return a prompt that makes the model stream a text of so many pieces at full speed."""
    return scripted({"do": "say", "text": "word " * pieces, "deltas": pieces})


SLOW_TEXT: Final = scripted({"do": "say", "text": "word " * 500, "deltas": 500, "pause": 0.1})


def program(name: str) -> Path | None:
    """Return the newest installed program of an agent, or None."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = Path(os.environ.get("SESSIONMGR_AGENTS") or Path(cache, "sessionmgr", "agents"))
    found = sorted(place.glob(f"{name}-*/bin/{name}"), key=_version)
    return found[-1] if found else None


def _version(path: Path) -> list[int]:
    return [int(each) for each in path.parts[-3].partition("-")[2].split(".") if each.isdecimal()]


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """The agent's program, its working directory, and its environment with the scripted model."""

    program: str
    work: Path
    env: dict[str, str]


@contextmanager
def set_up_agent(
    name: str, environment: Callable[[Path, str], dict[str, str]]
) -> Generator[AgentSetup]:
    """Serve a model and create a home; `environment` fills the home, given the model's URL."""
    found = program(name)
    if found is None:
        sys.exit(f"there is no {name}: {INSTALL}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        for each in ("work", "home", "tmp"):
            (root / each).mkdir()
        with _model(root) as url:
            env = {
                "HOME": str(root / "home"),
                "TMPDIR": str(root / "tmp"),
                "PATH": os.environ["PATH"],
                "SHELL": shutil.which("bash") or "/bin/sh",
                "LANG": "C.UTF-8",
                "NO_PROXY": "127.0.0.1",
                **environment(root, url),
            }
            yield AgentSetup(str(found), root / "work", env)


@contextmanager
def _model(root: Path) -> Generator[str]:
    with model_verb(root / "server") as said:
        yield said["url"]


@contextmanager
def model_verb(output: Path, *arguments: str) -> Generator[dict[str, Any]]:
    """Serve a model by `sessionmgr model --json`, and yield what it prints into `output`."""
    python = os.environ.get(SERVED_BY, sys.executable)
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")))
    command = [python, "-m", "sessionmgr", "model", "--json", *arguments]
    with output.open("wb") as out, output.with_suffix(".log").open("wb") as log:
        env = {**os.environ, "PYTHONPATH": paths}
        server = subprocess.Popen(command, stdout=out, stderr=log, env=env)
    try:
        while (said := _document(output)) is None:
            if server.poll() is not None:
                sys.exit("the model's server did not start")
            time.sleep(0.02)
        yield said
    finally:
        server.terminate()  # SIGINT is ignored by what is started in the background
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _document(file: Path) -> dict[str, Any] | None:
    """Return the document in a file, once it is complete."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except ValueError:
        return None
    return found


class _Runtime(Protocol):
    def absence(self) -> str | None: ...
    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class WithAgent:
    """An interpreter that needs the program of an agent beside it."""

    agent: str
    python: _Runtime

    def absence(self) -> str | None:
        """Return how to install what is missing, or None."""
        if program(self.agent) is None:
            return f"there is no {self.agent}: {INSTALL}"
        return self.python.absence()

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Return the command, with the variable that names the interpreter of the model server."""
        named = f"{SERVED_BY}={sys.executable}"
        return ["env", named, *self.python.command(function, arguments)]
