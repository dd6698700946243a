"""Who is measured, and which program runs it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol


class Runtime(Protocol):
    """A program that runs contestants."""

    def absence(self) -> str | None:
        """Return how to install what is missing, or None if all is there."""
        ...

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Return the command that runs a function and prints its figures."""
        ...


@dataclass(frozen=True, slots=True)
class ThisPython:
    """The interpreter that runs us, with a package that may not be installed."""

    needs: str = ""

    def absence(self) -> str | None:
        """Return how to install the package, unless it is."""
        if not self.needs or find_spec(self.needs) is not None:
            return None
        return f"{self.needs} is not installed: {sys.executable} -m pip install {self.needs}"

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Run it in a fresh process of the same interpreter."""
        return [sys.executable, "-m", "benchmarks.run_contestant", function, *arguments]


@dataclass(frozen=True, slots=True)
class OtherPython:
    """An interpreter of its own, whose path stands in an environment variable."""

    variable: str
    needs: str
    install: str

    def absence(self) -> str | None:
        """Return how to make the environment, unless it is there and has the package."""
        python = os.environ.get(self.variable)
        if python is None:
            return f"{self.needs} is looked for where {self.variable} points: {self.install}"
        try:
            found = subprocess.run(
                [python, "-c", f"import {self.needs}"], capture_output=True, check=False
            )
        except OSError as error:
            return f"{self.variable}={python}: {error.strerror}; {self.install}"
        if found.returncode:
            return f"{self.variable}={python} cannot import {self.needs}: {self.install}"
        return None

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Run it in a fresh process of that interpreter."""
        return [os.environ[self.variable], "-m", "benchmarks.run_contestant", function, *arguments]


@dataclass(frozen=True, slots=True)
class Elixir:
    """The BEAM, with a script of ours."""

    script: Path

    def absence(self) -> str | None:
        """Return how to install Elixir, unless it is."""
        if shutil.which("elixir"):
            return None
        return "elixir is not on PATH: apt install elixir, or https://elixir-lang.org/install"

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Run the function of the script."""
        return ["elixir", str(self.script), function, *arguments]


@dataclass(frozen=True, slots=True)
class Contestant:
    """Something that measures figures, once per round, in a process of its own."""

    name: str
    function: str
    arguments: tuple[str, ...] = ()
    runtime: Runtime = field(default_factory=ThisPython)

    def command(self, *, smoke: bool) -> list[str]:
        """Return the command that measures once."""
        arguments = (*self.arguments, "--smoke") if smoke else self.arguments
        return self.runtime.command(self.function, arguments)
