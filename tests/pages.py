"""The pages of the repository, the blocks in them, and their pictures.

python -m tests.pages --check mypy     check the Python blocks of all pages with mypy
python -m tests.pages --check pyright  the same with pyright, in strict mode
python -m tests.pages --write          renew the pictures of README.md, and the tables of pages
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import sessionmgr
import sessionmgr_adapters
from sessionmgr.model import PermissionMode
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from tests import acp_permissions
from tests.real.acp.limits import LIMITS

ROOT: Final = Path(__file__).parents[1]
PYPROJECT: Final = ROOT / "pyproject.toml"
PACKAGES: Final = {
    "sessionmgr": Path(sessionmgr.__path__[0]),
    "adapters/sessionmgr_adapters": Path(sessionmgr_adapters.__path__[0]),
}
"""Folders of the repository, and where they are installed."""
AGENTS: Final = {
    "adapters/sessionmgr_adapters/acp/README.md": "acp:goose",
    "adapters/sessionmgr_adapters/claude/README.md": "claude",
    "adapters/sessionmgr_adapters/codex/README.md": "codex",
    "adapters/sessionmgr_adapters/gemini/README.md": "gemini",
}
"""Pages whose programs need a real agent."""
TABLES: Final = ("adapters/sessionmgr_adapters/acp/README.md",)
"""Pages with tables that are printed from data."""
SPINE: Final = ("connection", "driver", "recorder", "store", "cursor")
"""The stations of an event's path after the child process; each is a module or a package."""

_FENCED: Final = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    prints: str | None
    """The text block that follows a Python block: its output."""

    @property
    def name(self) -> str:
        """A name for a test or a module."""
        where = self.page.removesuffix(".md").removesuffix("/README")
        return f"{re.sub(r'[^A-Za-z0-9]+', '_', where)}_line{self.line}"


def pages() -> dict[str, Path]:
    """Return all pages by their path in the repository, with the place where each is installed."""
    found = {"README.md": ROOT / "README.md", "tests/README.md": ROOT / "tests/README.md"}
    for folder, place in PACKAGES.items():
        for path in sorted(place.rglob("*.md")):
            found[f"{folder}/{path.relative_to(place).as_posix()}"] = path
    return found


def text_of(page: str) -> str:
    """Return the text of a page."""
    return pages()[page].read_text(encoding="utf-8")


def blocks(*languages: str) -> list[Block]:
    """Return the fenced blocks in these languages, of all pages."""
    found: list[Block] = []
    for page, path in pages().items():
        text = path.read_text(encoding="utf-8")
        matches = list(_FENCED.finditer(text))
        for match, after in zip_longest(matches, matches[1:]):
            line = text.count("\n", 0, match.start()) + 1
            assert match is not None
            prints = after[2] if after is not None and after[1] == "text" else None
            found.append(Block(page, line, match[1], match[2], prints))
    return [block for block in found if block.language in languages]


def place_of(path: str) -> Path:
    """Return where a path of the repository is installed."""
    for folder, place in PACKAGES.items():
        if path == folder or path.startswith(f"{folder}/"):
            return place / path.removeprefix(folder).lstrip("/")
    return ROOT / path


# --- pictures ----------------------------------------------------------------------------------


def layers() -> list[list[str]]:
    """Return the layers of the package, the highest first, as `pyproject.toml` has them."""
    tools = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]
    contracts = cast("list[dict[str, Any]]", tools["importlinter"]["contracts"])
    (contract,) = (each for each in contracts if each.get("containers") == ["sessionmgr"])
    return [[name.strip(" ()") for name in row.split("|")] for row in contract["layers"]]


def providers() -> list[str]:
    """Return the names of the providers that this distribution brings."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    return sorted(project["entry-points"]["sessionmgr.adapters"])


def pictures() -> dict[str, str]:
    """Return the pictures of the README by the names in their markers."""
    chain = " --> ".join(" & ".join(row) for row in layers())
    packages = [
        "flowchart TD",
        f"    {chain}",
        f'    providers["sessionmgr_adapters: {", ".join(providers())}"] --> adapter',
    ]
    spine = ["flowchart LR", f'    child["child process"] --> {" --> ".join(SPINE)}']
    return {"packages": "\n".join(packages), "spine": "\n".join(spine)}


def tables() -> dict[str, str]:
    """Return the tables of pages that are printed from data, by the names in their markers."""
    return {
        "agents": acp_agents(),
        "limits of agents": acp_limits(),
        "permissions of agents": acp_permissions.table(),
    }


def acp_agents() -> str:
    """Return the table of the agents over ACP that are known."""
    rows = ["| agent | ids | program | install | cannot |", "|---|---|---|---|---|"]
    for name, quirks in BUNDLED.items():
        ids = ", ".join(f"`{each}`" for each in (name, *quirks.aliases))
        modes = [each.value for each in PermissionMode if each not in quirks.modes]
        servers = [] if quirks.starts_servers else ["MCP servers with a command"]
        cannot = ", ".join([*sorted(quirks.lacks), *modes, *servers])
        program = " ".join(quirks.command)
        rows.append(f"| {quirks.title} | {ids} | `{program}` | `{quirks.install}` | {cannot} |")
    return "\n".join(rows)


def acp_limits() -> str:
    """Return the table of what agents over ACP do in place of what they should."""
    rows = ["| agent | case | what happens |", "|---|---|---|"]
    for name, limits in LIMITS.items():
        for outcome in dict.fromkeys(each.outcome for each in limits):
            cases = ", ".join(each.case for each in limits if each.outcome == outcome)
            rows.append(f"| {BUNDLED[name].title} | {cases} | {outcome} |")
    return "\n".join(rows)


def with_tables(text: str) -> str:
    """Return a page with its tables renewed."""
    for name, table in tables().items():
        head = re.escape(f"<!-- table: {name} -->\n\n")
        text = re.sub(rf"({head})(\|.*\n)+", lambda found: f"{found[1]}{table}\n", text)  # noqa: B023
    return text


def with_pictures(text: str) -> str:
    """Return a page with its pictures renewed."""
    for name, picture in pictures().items():
        head = re.escape(f"<!-- picture: {name} -->\n")
        block = f"```mermaid\n{picture}\n```"
        text = re.sub(rf"({head})```mermaid\n.*?\n```", rf"\g<1>{block}", text, flags=re.DOTALL)
    return text


# --- type checkers -----------------------------------------------------------------------------


def has_checker(name: str) -> bool:
    """Say whether a type checker is installed beside this interpreter."""
    return _program(name).exists()


def check_types(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Write all Python blocks into `folder` and check them with mypy or pyright, in strict mode."""
    package = folder / "pages"
    package.mkdir()
    for block in blocks("python"):
        (package / f"{block.name}.py").write_text(block.text, encoding="utf-8")
    config = PYPROJECT
    arguments = ["--config-file", str(config), "--no-error-summary", str(package)]
    if name == "pyright":
        config = folder / "pyrightconfig.json"
        settings = {
            "include": ["pages"],
            "extraPaths": [str(ROOT), str(ROOT / "adapters")],
            "typeCheckingMode": "strict",
            "pythonVersion": "3.11",
        }
        config.write_text(json.dumps(settings), encoding="utf-8")
        arguments = ["--project", str(config), "--pythonpath", sys.executable]
    return subprocess.run(
        [str(_program(name)), *arguments],
        cwd=ROOT,
        env={**_environment(), "MYPYPATH": str(package)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=900,
    )


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


def _program(name: str) -> Path:
    return Path(shutil.which(name, path=str(Path(sys.executable).parent)) or "/nowhere")


def main() -> int:
    """Check or write, as the arguments say, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.pages")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", choices=("mypy", "pyright"), help="check the Python blocks")
    group.add_argument("--write", action="store_true", help="renew pictures and tables")
    args = parser.parse_args()
    if args.write:
        readme = pages()["README.md"]
        readme.write_text(with_pictures(text_of("README.md")), encoding="utf-8")
        for page in TABLES:
            pages()[page].write_text(with_tables(text_of(page)), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        ran = check_types(args.check, Path(folder))
        sys.stdout.write(ran.stdout + ran.stderr)
        return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
