"""Jobs of the demo, and scripts of their agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.batch import Job
from sessionmgr.testing import Ask, Crash, Hang, Say, Think, Tool, Use, Wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.testing import Step

AGENT: Final = "agent"
INTRODUCTION: Final = """\
24 jobs for scripted agents and shell commands, eight at a time. Watch four:
  flaky-network  crashes, and is retried
  endless-loop   hangs, and is stopped at its deadline
  tidy-up        is denied a tool, and continues without it
  wrong-branch   is cancelled halfway"""

CONTINUE: Final = "continue"
CRASHES: Final = "Find out why the network is flaky"
HANGS: Final = "Count to infinity"
DENIED: Final = "Tidy up the build directory"
CANCELLED: Final = "Rebase the wrong branch"

_WORK: Final = {
    "fix-login": ("Fix the login form", "src/login.py", "npm test -- login"),
    "add-tests": (
        "Add tests for the parser",
        "tests/test_parser.py",
        "pytest tests/test_parser.py",
    ),
    "flaky-network": (CRASHES, "src/network.py", "pytest tests/test_network.py"),
    "write-changelog": ("Write the changelog", "CHANGELOG.md", "git log --oneline v1.2..HEAD"),
    "endless-loop": (HANGS, "", ""),
    "rename-module": ("Rename the module `core`", "src/core.py", "git grep -l core"),
    "tidy-up": (DENIED, "", ""),
    "wrong-branch": (CANCELLED, "", "git rebase feature/old"),
    "type-hints": ("Add type hints to utils.py", "src/utils.py", "mypy src"),
    "bump-deps": ("Bump the dependencies", "requirements.txt", "pip list --outdated"),
    "dark-mode": ("Add a dark mode", "web/theme.css", "npm run build"),
    "faster-query": ("Make the report query faster", "src/report.sql", "psql -f explain.sql"),
    "docs-typos": ("Mend the typos in the docs", "docs/guide.md", "codespell docs"),
    "drop-py39": ("Drop Python 3.9", "pyproject.toml", "tox -e py311"),
    "retry-upload": ("Try uploads again", "src/upload.py", "pytest tests/test_upload.py"),
    "sort-imports": ("Sort the imports", "src/", "ruff check --select I --fix src"),
}
_COMMANDS: Final = {
    "disk-space": "df -h .",
    "who-am-i": "id",
    "kernel": "uname -a",
    "a-second": "sleep 1",
    "two-seconds": "sleep 2",
    "today": "date",
    "list": "ls",
    "environment": "env",
}

JOBS: Final = [
    *(
        Job(id=name, provider=AGENT, prompt=prompt, deadline=3.0 if prompt == HANGS else None)
        for name, (prompt, _, _) in _WORK.items()
    ),
    *(Job(id=name, provider="shell", prompt=command) for name, command in _COMMANDS.items()),
]


def script_for(prompt: str, attempt: int) -> Sequence[Step]:
    """Return the script of an agent for a prompt; `attempt` counts from 0."""
    match prompt:
        case _ if prompt == HANGS:
            return [Say(text="One, two, three"), Hang()]
        case _ if prompt == CRASHES and attempt == 0:
            return [Wait(seconds=1.0), Crash(message="connection reset")]
        case _ if prompt == DENIED:
            asked = Ask(
                tool="Bash", input={"command": "rm -rf build"}, effect="command", output="done"
            )
            return [Wait(seconds=0.5), asked, Say(text="Then I leave it as it is."), *_usage(3)]
        case _ if prompt == CANCELLED:
            return [Tool(name="Bash", input={"command": "git rebase feature/old"}, takes=60.0)]
        case _ if prompt == CONTINUE:  # only the job that crashes is resumed in its session
            return _work(CRASHES)
        case _:
            return _work(prompt)


def _work(prompt: str) -> list[Step]:
    """Return ordinary work, different for each prompt."""
    files = {each: (path, command) for each, path, command in _WORK.values()}
    path, command = files[prompt]
    pace = 0.2 + len(prompt) % 5 * 0.1
    return [
        Wait(seconds=pace),
        Think(text=f"What does {path} do?"),
        Tool(name="Read", input={"file_path": path}, output="…", takes=pace),
        Tool(name="Edit", input={"file_path": path}, output="ok", takes=pace),
        Tool(name="Bash", input={"command": command}, output="ok", takes=pace * 2),
        Say(text=f"Done: {prompt}.", deltas=5, pause=pace / 5),
        *_usage(len(prompt)),
    ]


def _usage(effort: int) -> list[Step]:
    return [Use(input=700 * effort, output=90 * effort, usd=0.004 * effort)]
