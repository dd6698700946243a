"""A registry file says which agents there are and how to start them; its mistakes are named."""

import json
import platform
import sys
from pathlib import Path

import pytest

from sessionmgr.adapter import AgentsFileInvalid, VariantUnknown
from sessionmgr_adapters.acp.registry import (
    agent_ids,
    decode_registry,
    find_agent,
    read_registry,
    start_command,
)

HERE = f"{sys.platform}-{ {'arm64': 'aarch64'}.get(platform.machine(), platform.machine()) }"
BUNDLED = ("gemini", "goose")
HERON = {
    "id": "heron",
    "name": "Heron",
    "version": "1.2.0",
    "description": "An agent",
    "license": "MIT",
    "distribution": {
        "binary": {
            HERE: {
                "archive": "https://example.com/heron.tar.gz",
                "cmd": "./bin/heron",
                "args": ["acp"],
                "env": {"HERON": "1"},
            },
            "windows-x86_64": {"archive": "https://example.com/heron.zip", "cmd": "heron.exe"},
        }
    },
}
STORK = {
    "id": "stork",
    "version": "0.3.0",
    "distribution": {
        "npx": {"package": "@birds/stork-acp@0.3.0", "args": ["--acp"], "env": {"A": "b"}}
    },
}


def registry(*agents: object) -> bytes:
    return json.dumps({"version": "1.0.0", "agents": agents, "extensions": []}).encode()


def written(place: Path, *agents: object) -> Path:
    file = place / "registry.json"
    file.write_bytes(registry(*agents))
    return file


def program(place: Path, name: str) -> Path:
    place.mkdir(exist_ok=True)
    made = place / name
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def mistake(data: bytes) -> str:
    with pytest.raises(AgentsFileInvalid) as caught:
        decode_registry(data, "agents.json")
    assert caught.value.file == "agents.json"
    return str(caught.value).removeprefix("agents file agents.json: ")


# --- reading --------------------------------------------------------------------------------------


def test_a_registry_and_the_entry_of_one_agent_are_read() -> None:
    found = decode_registry(registry(HERON, STORK), "registry.json")
    assert list(found) == ["heron", "stork"]
    assert decode_registry(json.dumps(HERON).encode(), "agent.json") == {"heron": found["heron"]}
    assert found["heron"].name == "Heron"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "Heron"}, "agent 'Heron': id: expected str matching regex '^[a-z][a-z0-9-]*$', "),
        ({"id": 3}, "agents[0]: id: expected str, got 3 (a number); "),
        ({"version": ""}, "agent 'heron': version: expected str of length >= 1, got \"\" "),
        ({"version": 1.2}, "agent 'heron': version: expected str, got 1.2 (a number); "),
        ({"distribution": {}}, "agent 'heron': distribution: expected binary, npx or uvx, got {} "),
        ({"distribution": {"docker": {}}}, "distribution: expected binary, npx or uvx, got {"),
        ({"distribution": None}, "distribution: expected object, got null; "),
        ({"distribution": {"npx": {}}}, "distribution.npx: object missing required field package"),
        (
            {"distribution": {"npx": {"package": "a", "args": "b"}}},
            'npx.args: expected array, got "b"',
        ),
        (
            {"distribution": {"uvx": {"package": "a", "args": ["b", 3]}}},
            "uvx.args[1]: expected str, got 3",
        ),
        (
            {"distribution": {"binary": {"linux-x": {"cmd": 3}}}},
            "distribution.binary.linux-x.cmd: expected str, got 3",
        ),
        ({"distribution": {"binary": []}}, "distribution.binary: expected object, got [] (a list)"),
    ],
)
def test_an_invalid_entry_is_refused_with_its_agent_field_and_value(
    changes: dict[str, object], said: str
) -> None:
    text = mistake(registry({**HERON, **changes}))
    assert said in text
    assert text.endswith("; correct the entry or remove it")


def test_a_variable_with_a_wrong_value_is_named_and_a_wrong_table_of_them_is_not_shown() -> None:
    ways = {"npx": {"package": "a", "env": {"PORT": 8080}}}
    text = mistake(registry({**HERON, "distribution": ways}))
    assert "distribution.npx.env.PORT: expected str, got 8080 (a number)" in text
    ways = {"npx": {"package": "a", "env": "TOKEN=secret"}}
    text = mistake(registry({**HERON, "distribution": ways}))
    assert "distribution.npx.env: expected object, got str" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "invalid JSON: "),
        (b"id = 1", "invalid JSON: "),
        (b'"\xff"', "invalid JSON: "),
        (b"[]", "expected a registry or an agent; a registry is "),
        (b'{"servers": {}}', "expected a registry or an agent; "),
        (b'{"agents": {"heron": {}}}', "agents: expected a list, got "),
        (b'{"agents": ["heron"]}', 'agents[0]: expected object, got "heron" (a string); '),
    ],
)
def test_another_file_is_refused_with_the_form_that_is_expected(data: bytes, said: str) -> None:
    assert mistake(data).startswith(said)


def test_an_id_can_be_listed_only_once() -> None:
    assert mistake(registry(HERON, HERON)) == "agent 'heron': id: listed twice; remove one entry"


def test_a_missing_file_and_a_directory_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AgentsFileInvalid) as caught:
        read_registry(tmp_path / "none.json")
    assert str(caught.value) == (
        f"agents file {tmp_path}/none.json: no such file; name a registry.json or agent.json"
    )
    with pytest.raises(AgentsFileInvalid, match="is not a file; name a registry"):
        read_registry(tmp_path)
    with pytest.raises(AgentsFileInvalid, match="name a registry"):
        read_registry(Path("a\0b"))


# --- the agent of a name --------------------------------------------------------------------------


def test_a_name_means_an_entry_before_a_bundled_agent(tmp_path: Path) -> None:
    file = written(tmp_path, HERON, {**STORK, "id": "goose"})
    assert agent_ids(file, BUNDLED) == ["gemini", "goose", "heron"]
    assert agent_ids(None, BUNDLED) == ["gemini", "goose"]
    entries = read_registry(file)
    assert find_agent("acp", "goose", file, BUNDLED).entry == entries["goose"]
    assert find_agent("acp", "gemini", file, BUNDLED).entry is None
    pinned = find_agent("acp", "heron@1.2.0", file, BUNDLED)
    assert (pinned.id, pinned.version, pinned.entry) == ("heron", "1.2.0", entries["heron"])


def refusal(variant: str, file: Path | None) -> str:
    with pytest.raises(VariantUnknown) as caught:
        find_agent("acp", variant, file, BUNDLED)
    assert caught.value.name == f"acp:{variant}"
    return str(caught.value).removeprefix(f"unknown provider 'acp:{variant}'; ")


def test_an_unknown_agent_is_refused_with_the_nearest_one_and_all_others(tmp_path: Path) -> None:
    assert refusal("gose", None) == (
        "did you mean 'acp:goose'? known agents: gemini, goose; "
        "or name a registry file with it (--agents FILE)"
    )
    file = written(tmp_path, HERON)
    assert refusal("crow", file) == f"known agents: gemini, goose, heron; or add it to {file}"


def test_another_version_is_refused_with_both(tmp_path: Path) -> None:
    file = written(tmp_path, HERON)
    assert refusal("heron@1.3.0", file) == (
        f"{file} has version 1.2.0 of heron, not 1.3.0; "
        "use acp:heron@1.2.0, or a file with 1.3.0 (--agents FILE)"
    )
    assert refusal("goose@1.50.0", file) == (
        "only a registry file fixes the version of an agent, and there is none with goose; "
        "name one (--agents FILE), or use acp:goose"
    )


# --- how to start it ------------------------------------------------------------------------------


def test_an_installed_program_is_found_by_the_name_of_its_command(tmp_path: Path) -> None:
    entry = decode_registry(registry(HERON), "r")["heron"]
    missing = start_command(entry, {"PATH": str(tmp_path)})
    assert missing.missing == (
        "program 'heron' not found on PATH; install it from https://example.com/heron.tar.gz"
    )
    program(tmp_path, "heron")
    found = start_command(entry, {"PATH": str(tmp_path)})
    assert (found.argv, found.env) == (("heron", "acp"), {"HERON": "1"})
    assert (found.runner, found.missing) == (None, "")


def test_a_program_in_the_directory_of_the_run_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "heron")
    monkeypatch.chdir(tmp_path)
    entry = decode_registry(registry(HERON), "r")["heron"]
    assert start_command(entry, {"PATH": "/nowhere"}).missing


def test_an_absolute_command_is_used_as_it_is(tmp_path: Path) -> None:
    made = program(tmp_path / "opt", "heron")
    ways = {"binary": {HERE: {"archive": "", "cmd": str(made)}}}
    entry = decode_registry(registry({**HERON, "distribution": ways}), "r")["heron"]
    assert start_command(entry, {"PATH": ""}).argv == (str(made),)


@pytest.mark.parametrize(
    ("package", "cmd", "installed"),
    [
        ("@birds/stork-acp@0.3.0", None, "stork-acp"),
        ("stork-acp==0.3.0", None, "stork-acp"),
        ("stork-acp[all]", None, "stork-acp"),
        ("@birds/cli", None, "stork"),
        ("@birds/stork-acp", None, "stork"),
        ("@birds/stork", "stork-agent", "stork-agent"),
    ],
)
@pytest.mark.parametrize("runner", ["npx", "uvx"])
def test_the_program_of_a_package_is_preferred_to_npx_and_uvx(
    tmp_path: Path, package: str, cmd: str | None, installed: str, runner: str
) -> None:
    program(tmp_path, runner)
    program(tmp_path, "cli")  # any program may have this name
    ways = {runner: {"package": package, "cmd": cmd, "args": ["--acp"]}}
    entry = decode_registry(registry({**STORK, "distribution": ways}), "r")["stork"]
    env = {"PATH": str(tmp_path)}
    ran = start_command(entry, env)
    assert ran.runner == runner
    assert ran.argv[-1] == "--acp"
    program(tmp_path, installed)
    assert start_command(entry, env).argv == (installed, "--acp")


def test_npx_and_uvx_run_a_package_and_perhaps_another_program_of_it(tmp_path: Path) -> None:
    for name in ("npx", "uvx"):
        program(tmp_path, name)

    def argv(ways: object) -> tuple[str, ...]:
        entry = decode_registry(registry({**STORK, "distribution": ways}), "r")["stork"]
        return start_command(entry, {"PATH": str(tmp_path)}).argv

    package = {"package": "p@1"}
    assert argv({"npx": package}) == ("npx", "-y", "p@1")
    assert argv({"uvx": package}) == ("uvx", "p@1")
    assert argv({"npx": {**package, "cmd": "c"}}) == ("npx", "-y", "--package", "p@1", "c")
    assert argv({"uvx": {**package, "cmd": "c"}}) == ("uvx", "--from", "p@1", "c")
    assert argv({"uvx": package, "npx": package})[0] == "npx"


def test_a_missing_program_is_reported_with_the_command_that_installs_it() -> None:
    nowhere = {"PATH": "/nowhere"}
    stork = decode_registry(registry(STORK), "r")["stork"]
    assert start_command(stork, nowhere).missing == (
        "program 'stork-acp' or 'stork' not found on PATH; npm install -g @birds/stork-acp@0.3.0"
    )
    ways = {"binary": {"plan9-mips": {"archive": "a", "cmd": "./heron"}}}
    heron = decode_registry(registry({**HERON, "distribution": ways}), "r")["heron"]
    assert start_command(heron, nowhere).missing == (
        f"program 'heron' not found on PATH; install it; its entry has no program for {HERE}"
    )
