"""Where contestants meet Claude Code: the real program, and a scripted model that costs nothing.

Needs nothing but the standard library, because one of them has an interpreter of its own. The model
is served by a process of its own, so that what it costs is nobody's.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).resolve().parent.parent.parent
SERVED_BY: Final = "SESSIONMGR_BENCHMARKS_PYTHON"
"""The interpreter that has what the model's server needs."""
INSTALL: Final = ".ci/agents installs it, or SESSIONMGR_AGENTS says where it is installed"
HI: Final = "hi"
PIECES: Final = 3_000


def scripted(*moves: dict[str, object]) -> str:
    """Return a prompt that has the model do this."""
    return f"<script>{json.dumps([list(moves)])}</script>"


def long_text(pieces: int) -> str:
    """Return a prompt that has a text streamed in so many pieces, as fast as it goes."""
    return scripted({"do": "say", "text": "word " * pieces, "deltas": pieces})


SLOW_TEXT: Final = scripted({"do": "say", "text": "word " * 500, "deltas": 500, "pause": 0.1})


def program() -> Path | None:
    """Return the newest Claude Code that is installed for tests, if there is one."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = Path(os.environ.get("SESSIONMGR_AGENTS") or Path(cache, "sessionmgr", "agents"))
    found = sorted(place.glob("claude-*/bin/claude"), key=_version)
    return found[-1] if found else None


def _version(path: Path) -> list[int]:
    return [int(each) for each in path.parts[-3].partition("-")[2].split(".") if each.isdecimal()]


@dataclass(frozen=True, slots=True)
class Scene:
    """The program, a place to work, and the environment in which it knows the scripted model."""

    program: str
    work: Path
    env: dict[str, str]


@contextmanager
def set_scene() -> Generator[Scene]:
    """Serve a model, and make a home that holds nothing."""
    found = program()
    if found is None:
        sys.exit(f"there is no Claude Code: {INSTALL}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        with _model(root) as url:
            yield Scene(str(found), root / "work", _environment(root, url))


@contextmanager
def _model(root: Path) -> Generator[str]:
    said = root / "server"
    python = os.environ.get(SERVED_BY, sys.executable)
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")))
    command = [python, "-m", "sessionmgr.testing.model_server"]
    with said.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, env={**os.environ, "PYTHONPATH": paths})
    try:
        while not said.read_text().endswith("\n"):
            if server.poll() is not None:
                sys.exit("the model's server did not start")
            time.sleep(0.02)
        yield said.read_text().split()[0]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def _environment(root: Path, url: str) -> dict[str, str]:
    for name in ("work", "home/.claude", "tmp"):
        (root / name).mkdir(parents=True)
    return {
        "HOME": str(root / "home"),
        "CLAUDE_CONFIG_DIR": str(root / "home" / ".claude"),
        "TMPDIR": str(root / "tmp"),
        "PATH": os.environ["PATH"],
        "SHELL": shutil.which("bash") or "/bin/sh",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "NO_PROXY": "127.0.0.1",
    }


class _Runtime(Protocol):
    def absence(self) -> str | None: ...
    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class WithClaude:
    """An interpreter, where there is a Claude Code beside it."""

    python: _Runtime

    def absence(self) -> str | None:
        """Return how to install what is missing, or None if all is there."""
        if program() is None:
            return f"there is no Claude Code: {INSTALL}"
        return self.python.absence()

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Run it there, and have it know who serves the model."""
        named = f"{SERVED_BY}={sys.executable}"
        return ["env", named, *self.python.command(function, arguments)]
