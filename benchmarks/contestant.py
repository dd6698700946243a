"""Contestants, and the programs that run them."""

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
        """Return how to install what is missing, or None."""
        ...

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Return the command that runs a function and prints its figures."""
        ...


@dataclass(frozen=True, slots=True)
class ThisPython:
    """The current interpreter, with a package that it may lack."""

    needs: str = ""

    def absence(self) -> str | None:
        """Return how to install the package, or None."""
        if not self.needs or find_spec(self.needs) is not None:
            return None
        return f"{self.needs} is not installed: {sys.executable} -m pip install {self.needs}"

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Return a command for a fresh process of the same interpreter."""
        return [sys.executable, "-m", "benchmarks.run_contestant", function, *arguments]


@dataclass(frozen=True, slots=True)
class OtherPython:
    """Another interpreter, whose path is in an environment variable."""

    variable: str
    needs: str
    install: str

    def absence(self) -> str | None:
        """Return how to create the environment and install the package, or None."""
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
        """Return a command for a fresh process of that interpreter."""
        return [os.environ[self.variable], "-m", "benchmarks.run_contestant", function, *arguments]


@dataclass(frozen=True, slots=True)
class Elixir:
    """The BEAM with an Elixir script."""

    script: Path

    def absence(self) -> str | None:
        """Return how to install Elixir, or None."""
        if shutil.which("elixir"):
            return None
        return "elixir is not on PATH: apt install elixir, or https://elixir-lang.org/install"

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Return the command that runs the function of the script."""
        return ["elixir", str(self.script), function, *arguments]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A program that measures figures once per round, in a process of its own."""

    name: str
    function: str
    arguments: tuple[str, ...] = ()
    runtime: Runtime = field(default_factory=ThisPython)

    def command(self, *, smoke: bool) -> list[str]:
        """Return the command that measures once."""
        arguments = (*self.arguments, "--smoke") if smoke else self.arguments
        return self.runtime.command(self.function, arguments)
