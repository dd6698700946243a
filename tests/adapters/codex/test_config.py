"""The parts of a configuration that the adapter needs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.model import FailureKind, Json
from sessionmgr_adapters.codex.config import (
    CodexConfig,
    ConfigFileError,
    config_key_variables,
    decode_config_reply,
    read_config,
    read_project_configs,
)
from tests.adapters.codex.mock_agent import HELLO, Talk, greeted, refusal, result
from tests.adapters.codex.mocked_manager import failure, play


@pytest.mark.parametrize(
    "config",
    [
        {"model_providers.a.env_key": "WORD"},
        {"model_providers.a": {"env_key": "WORD", "name": "env_key"}},
        {"model_providers": {"a": {"env_key": "WORD"}}, "model": "x"},
        {"model_providers": {"a": {"env_http_headers": {"x-gate": "WORD"}}}},
        {"model_providers.a.env_http_headers.x-gate": "WORD"},
        {"mcp_servers": {"a": {"bearer_token_env_var": "WORD", "command": "env_key"}}},
    ],
)
def test_the_keys_that_overrides_name_are_found(config: dict[str, Json]) -> None:
    assert config_key_variables(config) == ("WORD",)


def test_a_configuration_of_an_odd_shape_hides_no_key() -> None:
    text = b"""{"config": {
        "mcp_servers": {"odd": 1, "a": {"tools": {"t": {}}}, "b": {"tools": 7}},
        "model_providers": {"p": {"env_key": "WORD"}, "q": 7},
        "shell_environment_policy": 7
    }}"""
    found = decode_config_reply(text)
    assert found is not None
    assert (found.key_variables, found.hidden_variables) == (("WORD",), None)
    assert found.mcp_server_names == {"odd": (), "a": ("t",), "b": ()}
    assert CodexConfig(mcp_servers=[]).mcp_server_names == {}
    assert decode_config_reply(b'{"config": 7}') is None


def test_files_are_read_beside_a_directory_and_all_that_it_is_in(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    for place in (tmp_path, inner):
        (place / ".codex").mkdir(parents=True)
        name = f'[shell_environment_policy]\nexclude = ["{place.name}"]\n'
        (place / ".codex" / "config.toml").write_text(name)
    found = [
        each.hidden_variables
        for each in read_project_configs(inner)
        if each.hidden_variables is not None
    ]
    assert found == [("b",), (tmp_path.name,)]
    assert read_config(tmp_path / "nowhere") == CodexConfig()
    (tmp_path / ".codex" / "config.toml").write_text("not = [toml")
    with pytest.raises(ConfigFileError, match=r"^cannot parse .*config\.toml: "):
        read_project_configs(inner)


async def test_what_is_configured_where_a_run_works_is_asked_for_before_its_thread(
    tmp_path: Path,
) -> None:
    configs: list[Json] = []
    config: Json = {"mcp_servers": {"lab": {"tools": {"write": {"approval_mode": "approve"}}}}}

    async def look(it: Talk) -> None:
        call = await greeted(it, config)
        configs.append(call.params["config"])
        it.says(refusal(call, "enough"))

    await play(look, mode="plan")
    assert isinstance(configs[0], dict)
    asked = {"write": {"approval_mode": "prompt"}}
    servers = {"lab": {"default_tools_approval_mode": "prompt", "tools": asked}}
    assert configs[0]["mcp_servers"] == servers


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            b'{"config": []}',
            FailureKind.PROTOCOL_ERROR,
            "the answer to config/read has an unknown form",
        ),
        (None, FailureKind.CONFIG_INVALID, "Codex refused config/read: invalid configuration: x"),
    ],
)
async def test_nothing_is_begun_where_the_configuration_is_not_known(
    answer: bytes | None, kind: FailureKind, words: str
) -> None:
    async def odd(it: Talk) -> None:
        it.says(HELLO)
        call = await it.heard()
        assert isinstance(call, RpcCall)
        if answer is None:
            it.says(refusal(call, "invalid configuration: x", -32603))
        else:
            it.says(result(call, msgspec.json.decode(answer)))

    found = failure(await play(odd))
    assert found[0] == kind
    assert found[1].startswith(words)
