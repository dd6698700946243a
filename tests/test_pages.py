"""The pages: programs run, settings are valid, links and anchors exist."""

from __future__ import annotations

import importlib.util
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from sessionmgr.batch import Job, read_rules
from sessionmgr.reference.markdown import anchor
from tests.cli.command import environment, run_command
from tests.pages import (
    AGENTS,
    PACKAGES,
    SPINE,
    TABLES,
    Block,
    blocks,
    check_types,
    has_checker,
    layers,
    pages,
    place_of,
    tables,
    text_of,
    with_pictures,
    with_tables,
)
from tests.portal.child import need

README_LINES = 300
PROGRAMS = [block for block in blocks("python") if block.page not in AGENTS]
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^()\s]+)\)")


def name(block: Block) -> str:
    return block.name


@pytest.mark.parametrize("program", PROGRAMS, ids=name)
def test_a_program_of_a_page_prints_what_the_page_says(program: Block, tmp_path: Path) -> None:
    if "import FastAPI" in program.text:
        need("fastapi")
    path = tmp_path / "example.py"
    path.write_text(program.text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", str(path)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    if program.prints is not None:
        assert ran.stdout == program.prints


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_programs_of_all_pages_pass_the_type_checkers(checker: str, tmp_path: Path) -> None:
    if not has_checker(checker):
        pytest.skip(f"{checker} is not installed: it comes with the extra dev")
    ran = check_types(checker, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_readme_is_short_and_has_a_program_for_each_use() -> None:
    assert len(text_of("README.md").splitlines()) <= README_LINES
    uses = [block.text for block in PROGRAMS if block.page == "README.md"]
    assert len(uses) >= 2
    assert any("sessionmgr.testing" in text for text in uses)


# --- settings, rules, jobs, commands -----------------------------------------------------------


@pytest.mark.parametrize("block", blocks("toml"), ids=name)
def test_toml_is_rules_or_a_project_or_settings(block: Block, tmp_path: Path) -> None:
    read = tomllib.loads(block.text)
    if "rule" in read:
        (tmp_path / "rules.toml").write_text(block.text, encoding="utf-8")
        read_rules(tmp_path / "rules.toml")
    elif "project" not in read:
        (tmp_path / "sessionmgr.toml").write_text(block.text, encoding="utf-8")
        env = environment(tmp_path)
        assert run_command("trust", str(tmp_path), cwd=tmp_path, env=env).returncode == 0
        ran = run_command("--print-config", cwd=tmp_path, env=env)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "sessionmgr.toml:" in ran.stdout


@pytest.mark.parametrize("block", blocks("json"), ids=name)
def test_json_is_jobs_or_one_value(block: Block) -> None:
    lines = block.text.splitlines()
    if '"id"' in lines[0]:
        for line in lines:
            values = json.loads(line)
            values.pop("deadline", None)  # files may contain a unit
            assert msgspec.convert(values, Job).prompt
    else:
        json.loads(block.text)


@pytest.mark.parametrize("block", blocks("sh"), ids=name)
def test_shell_commands_are_commands(block: Block) -> None:
    subprocess.run(["bash", "-n", "-c", block.text], check=True, timeout=60)
    program = """
import shlex, sys
from sessionmgr.cli.parser import Parser
from sessionmgr.cli.verb_table import VERBS, load_verb

for line in sys.stdin:
    words = shlex.split(line, comments=True)
    if words[:1] == ["sessionmgr"]:
        parser = Parser("sessionmgr", "")
        load_verb(VERBS[words[1]]).add_arguments(parser)
        parser.add_global_flags()
        parser.parse_intermixed_args(words[2:])
"""
    subprocess.run(
        [sys.executable, "-c", program], input=block.text, encoding="utf-8", check=True, timeout=60
    )


def test_every_block_has_a_known_language() -> None:
    # A block marked `py` is an excerpt of a file; a test of its page looks for it there.
    known = {"python", "py", "text", "sh", "console", "json", "toml", "mermaid"}
    fences = re.compile(r"^```(\S*)\n.*?^```$", re.MULTILINE | re.DOTALL)
    found = {(page, language) for page in pages() for language in fences.findall(text_of(page))}
    unknown = [(page, language) for page, language in found if language not in known]
    assert unknown == []


# --- names -------------------------------------------------------------------------------------

NOT_MODULES = {"sessionmgr.toml", "sessionmgr.db", "sessionmgr.adapters"}
HAND_WRITTEN = [page for page in pages() if not page.endswith("REFERENCE.md")]


@pytest.mark.parametrize("page", HAND_WRITTEN)
def test_the_modules_and_files_that_a_page_names_exist(page: str) -> None:
    text = text_of(page)
    dotted = set(re.findall(r"`(sessionmgr(?:_adapters)?(?:\.\w+)+)`", text)) - NOT_MODULES
    for each in dotted:
        assert pkgutil.resolve_name(each) is not None
    for each in set(re.findall(r"python -m ([\w.]+)", text)):
        assert importlib.util.find_spec(each) is not None, each
    files = {path.name for place in PACKAGES.values() for path in place.rglob("*.py")}
    assert set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", text)) <= files


# --- links -------------------------------------------------------------------------------------


def prose(page: str) -> str:
    """Return the text of a page without code."""
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`(?!\])", "", text)


def anchors(page: str) -> set[str]:
    headings = re.findall(
        r"^#+ (.*)$",
        re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )
    found: set[str] = set()
    for each in map(anchor, headings):
        number = sum(known == each or known.startswith(f"{each}-") for known in found)
        found.add(f"{each}-{number}" if each in found else each)
    return found


def links(page: str) -> list[tuple[str, str]]:
    """Return the paths in the repository, and the anchors, that a page links to."""
    found: list[tuple[str, str]] = []
    for target in LINK.findall(prose(page)):
        if "://" not in target:
            path, _, name_ = target.partition("#")
            joined = os.path.normpath(Path(page).parent / path) if path else page
            found.append((Path(joined).as_posix(), name_))
    return found


@pytest.mark.parametrize("page", pages())
def test_each_link_of_a_page_leads_to_a_file_and_a_heading(page: str) -> None:
    for path, name_ in links(page):
        assert place_of(path).exists(), path
        if name_:
            assert name_ in anchors(path), f"{path}#{name_}"


def test_each_page_can_be_reached_from_the_readme() -> None:
    found, todo = {"README.md"}, ["README.md"]
    while todo:
        new = {path for path, _ in links(todo.pop()) if path in pages()} - found
        found |= new
        todo += new
    assert found == set(pages())


def test_there_are_links_and_headings_to_look_at() -> None:
    assert len(links("README.md")) >= 10
    assert "install" in anchors("README.md")


# --- pictures ----------------------------------------------------------------------------------


def test_the_pictures_of_the_readme_are_current() -> None:
    text = text_of("README.md")
    assert text.count("<!-- picture: ") == 2
    assert with_pictures(text) == text, "run: python -m tests.pages --write"


def test_the_tables_of_pages_are_current() -> None:
    for page in TABLES:
        text = text_of(page)
        assert text.count("<!-- table: ") == len(tables())
        assert with_tables(text) == text, "run: python -m tests.pages --write"


def test_the_packages_of_the_picture_are_those_that_there_are_and_each_is_explained() -> None:
    place = PACKAGES["sessionmgr"]
    there = {
        path.stem if path.is_file() else path.name
        for path in place.iterdir()
        if (path / "__init__.py").exists() or path.suffix == ".py"
    }
    named = {each for row in layers() for each in row}
    assert named == there - {"__init__", "__main__", "lazy_exports"}
    map_ = text_of("README.md").partition("| package | contents |")[2].partition("\n## ")[0]
    explained = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", map_, re.MULTILINE)))
    )
    assert explained == named | {"sessionmgr_adapters"}


@pytest.mark.parametrize("station", SPINE)
def test_each_station_of_an_event_is_a_module_or_a_package(station: str) -> None:
    places = [path for place in PACKAGES.values() for path in place.rglob("*")]
    assert any(
        path.name == station or re.fullmatch(rf"(\w+_)?{station}s?\.py", path.name)
        for path in places
    )
