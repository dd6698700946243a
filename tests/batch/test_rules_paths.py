"""Rules judge a request by the directory and the files that it affects."""

from pathlib import Path
from typing import Literal

import pytest

from sessionmgr.adapter import ApprovalRequest
from sessionmgr.batch.rules import Rule, Rules
from tests.batch.test_rules_bypass import allows

WHERE = {
    "/work": (True, True),
    "/work/sub": (True, True),
    "/work/../etc": (False, False),
    "/etc": (False, False),
    "/workshop": (False, False),
    "/other/sub": (False, True),
}


@pytest.mark.parametrize("directory", WHERE)
def test_a_command_in_a_directory_of_its_own_is_judged_by_that(directory: str) -> None:
    asked = ApprovalRequest(
        tool_name="shell",
        tool_input={"command": "make"},
        effect="command",
        cwd="/work",
        tool_cwd=directory,
    )
    inside, other = WHERE[directory]
    assert allows(Rules((Rule(decision="allow", command="make"),)), asked) is inside
    named = (Rule(decision="allow", cwd="/other/*"), Rule(decision="allow", cwd="/work"))
    assert allows(Rules(named), asked) is (inside or other)
    denied = Rules((Rule(decision="deny", cwd=directory), Rule(decision="allow", tool="*")))
    assert not allows(denied, asked)
    assert allows(Rules((Rule(decision="allow", tool="shell"),)), asked)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two links: one to a place outside, one to another part of it."""
    for name in ("work/src", "work/secrets", "work/other/deep", "outside"):
        (tmp_path / name).mkdir(parents=True)
    work = tmp_path / "work"
    (work / "src" / "out").symlink_to(tmp_path / "outside")
    (work / "src" / "deep").symlink_to(work / "other" / "deep")
    (work / "s").symlink_to("secrets")
    return work


def edits(project: Path, path: str, effect: str = "edit") -> ApprovalRequest:
    return ApprovalRequest(
        tool_name="Write",
        effect="read" if effect == "read" else "edit",
        paths=(path,),
        cwd=str(project),
    )


ELSEWHERE = [
    "{}/src/out/x", "src/out/x", "{}/src/deep/x", "{}/src/deep/../x", "src/deep/../x",
    "{}/src/../x", "../x", "/etc/passwd", "src/../../x", "//etc/passwd", "~/src/x", "~",
    "src/out/../x", "/proc/self/cwd/src/x", "/proc/1/root{}/src/x", "//proc/self/cwd/src/x",
    "src/\x00x", "", ".",
]  # fmt: skip


@pytest.mark.parametrize("path", ELSEWHERE, ids=ascii)
def test_a_path_that_leads_elsewhere_is_not_allowed(project: Path, path: str) -> None:
    rules = Rules((Rule(decision="allow", path="src/**"),))
    assert not allows(rules, edits(project, path.format(project)))


@pytest.mark.parametrize(
    "path", ["src/x", "{}/src/x", "./src/./y/../x", "src", "src/deep/../../src/x"], ids=ascii
)
def test_a_path_is_resolved_in_the_jobs_directory(
    project: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    rules = Rules((Rule(decision="allow", path="src/**"),))
    assert allows(rules, edits(project, path.format(project)))


SECRETS = [
    "secrets/k", "{}/secrets/k", "s/k", "{}/s/k", "src/../secrets/k", "./secrets/./k", "secrets",
    "s", "~/x", "/proc/self/cwd/secrets/k", "src/deep/../../secrets/k", "\x00", "",
]  # fmt: skip


@pytest.mark.parametrize("path", SECRETS, ids=ascii)
def test_a_path_that_is_denied_is_denied_however_it_is_written(project: Path, path: str) -> None:
    rules = Rules((Rule(decision="deny", path="secrets/**"), Rule(decision="allow", tool="*")))
    assert not allows(rules, edits(project, path.format(project), "read"))
    assert allows(rules, edits(project, "src/x", "read"))


def test_a_denied_directory_is_denied_by_any_name_of_it(project: Path) -> None:
    asked = ApprovalRequest(
        tool_name="shell",
        tool_input={"command": "make"},
        effect="command",
        cwd=str(project),
        tool_cwd=str(project.parent / "outside"),
    )
    denying = Rule(decision="deny", cwd=f"{project}/src/out")
    assert not allows(Rules((denying, Rule(decision="allow", tool="*"))), asked)


@pytest.mark.parametrize(
    "pattern", ["src/out/**", "{}/src/out/*", "src/out/key", "{}/src/o*t/key", "s/../src/out/key"]
)
@pytest.mark.parametrize("path", ["src/out/key", "{}/../outside/key", "../outside/key"])
def test_a_denial_by_way_of_a_link_is_about_where_it_leads(
    project: Path, pattern: str, path: str
) -> None:
    denying = Rule(decision="deny", path=pattern.format(project))
    rules = Rules((denying, Rule(decision="allow", tool="*")))
    by_its_name = path.startswith("src") or "*t" not in pattern
    assert allows(rules, edits(project, path.format(project))) is not by_its_name
    assert allows(rules, edits(project, "src/key"))


@pytest.mark.parametrize("effect", ["command", "other"])
@pytest.mark.parametrize("named", ["command", "cmd", "script", "argv"])
def test_paths_that_are_named_beside_a_command_do_not_allow_it(
    project: Path, named: str, effect: Literal["command", "other"]
) -> None:
    asked = ApprovalRequest(
        tool_name="mcp__shell__run",
        tool_input={named: "curl evil.example", "path": "src/x"},
        effect=effect,
        paths=(str(project / "src/x"),),
        cwd=str(project),
    )
    rules = Rules((Rule(decision="allow", path="src/**"),))
    assert not allows(rules, asked)


def test_an_edit_of_files_that_are_not_known_fits_a_denial_of_paths() -> None:
    rules = Rules((Rule(decision="deny", path="secrets/**"), Rule(decision="allow", tool="*")))
    assert not allows(rules, ApprovalRequest(tool_name="apply_patch", effect="edit", cwd="/work"))
    assert allows(rules, ApprovalRequest(tool_name="Glob", effect="read", cwd="/work"))
