"""MCP servers whose tools need an approval."""

from __future__ import annotations

import pytest

from sessionmgr.model import Json
from sessionmgr_adapters.codex.config import CodexConfig, ask_for_all_tools


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
    found = ask_for_all_tools({"model": "m", **config}, {})
    assert found == {"model": "m", **({"mcp_servers": asked} if asked else {})}


def test_tools_of_which_something_is_said_are_asked_about_as_well() -> None:
    config: dict[str, Json] = {"mcp_servers.own.tools": {"b": {"approval_mode": "approve"}}}
    assert ask_for_all_tools(config, {"users": ("a",), "own": ()}) == {
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


def test_servers_that_only_a_project_has_are_not_used() -> None:
    near = CodexConfig(mcp_servers={"lab": {"args": ["x"]}, "own": {"tools": {"a": {}}}, "no": {}})
    far = CodexConfig(
        mcp_servers={"lab": {"command": "c", "tools": {"w": {}}}, "web": {"url": "u"}}
    )
    ask = {"default_tools_approval_mode": "prompt"}
    found = ask_for_all_tools(
        {"mcp_servers.own.command": "x"}, {"lab2": ()}, [near, far, CodexConfig()]
    )
    assert found == {
        "mcp_servers": {
            "lab2": ask,
            "own": {"command": "x", "tools": {"a": {"approval_mode": "prompt"}}, **ask},
            "lab": {"command": "c", "enabled": False},
            "web": {"url": "u", "enabled": False},
        }
    }
