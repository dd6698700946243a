"""MCP servers of which nothing is used unasked."""

from __future__ import annotations

import msgspec
import pytest

from sessionmgr.model import Json
from sessionmgr_adapters.codex.hello import Configured
from sessionmgr_adapters.codex.servers import all_asked


@pytest.mark.parametrize(
    ("config", "servers"),
    [
        ({}, {}),
        ({"mcp_servers.own": {"command": "x"}}, {"own": {"command": "x"}}),
        (
            {"mcp_servers": {"own": {"command": "x"}}, "mcp_servers.own.env.A": "1"},
            {"own": {"command": "x", "env": {"A": "1"}}},
        ),
        (
            {"mcp_servers.own.default_tools_approval_mode": "approve", "mcp_servers.odd": 1},
            {"own": {}, "odd": 1},
        ),
    ],
)
def test_every_tool_is_asked_about(config: dict[str, Json], servers: dict[str, Json]) -> None:
    asked = {
        name: {**server, "default_tools_approval_mode": "prompt"}
        if isinstance(server, dict)
        else server
        for name, server in servers.items()
    }
    found = all_asked({"model": "m", **config}, {})
    assert found == {"model": "m", **({"mcp_servers": asked} if asked else {})}


def test_tools_of_which_something_is_said_are_asked_about_as_well() -> None:
    config: dict[str, Json] = {"mcp_servers.own.tools": {"b": {"approval_mode": "approve"}}}
    assert all_asked(config, {"users": ("a",), "own": ()}) == {
        "mcp_servers": {
            "users": {
                "tools": {"a": {"approval_mode": "prompt"}},
                "default_tools_approval_mode": "prompt",
            },
            "own": {
                "tools": {"b": {"approval_mode": "prompt"}},
                "default_tools_approval_mode": "prompt",
            },
        }
    }
    assert config == {"mcp_servers.own.tools": {"b": {"approval_mode": "approve"}}}


def test_servers_of_an_odd_shape_hide_nothing_else_of_a_configuration() -> None:
    text = b"""{
        "mcp_servers": {"odd": 1, "a": {"tools": {"t": {}}}, "b": {"tools": 7}},
        "model_providers": {"p": {"env_key": "WORD"}}
    }"""
    found = msgspec.json.decode(text, type=Configured)
    assert found.keys == ("WORD",)
    assert found.servers == {"odd": (), "a": ("t",), "b": ()}
    assert Configured(mcp_servers=[]).servers == {}
