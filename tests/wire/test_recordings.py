"""Recorded traffic of real agents and their clients, where the recordings are available."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from sessionmgr.wire.json_rpc import (
    RpcErrorResponse,
    RpcId,
    RpcMessage,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    decode_rpc,
    encode_rpc,
)
from sessionmgr.wire.lines import LineDecoder
from sessionmgr.wire.noise import strip_wrapping
from tests.wire.chunks import pieces

VARIABLE = "SESSIONMGR_RECORDINGS"
Entry = dict[str, object]


@pytest.fixture(scope="module")
def recordings() -> list[list[Entry]]:
    """All recordings, entry by entry; in `dir`, `<` is the agent and `>` its client."""
    place = os.environ.get(VARIABLE)
    if place is None:
        pytest.skip(f"{VARIABLE} does not name the directory of the recordings")
    paths = sorted(Path(place).rglob("*.jsonl"))
    assert paths, f"{VARIABLE}={place} holds no recordings"
    return [[json.loads(line) for line in path.read_bytes().splitlines()] for path in paths]


def said(entry: Entry) -> bytes | None:
    """The line that went over the pipe, if the entry is one."""
    if entry["dir"] not in ("<", ">"):
        return None
    line = entry["line"] if "line" in entry else entry["msg"]
    text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
    return text.rstrip("\n").encode()


def messages(recording: list[Entry]) -> Iterator[tuple[str, Entry, RpcMessage]]:
    """The JSON-RPC messages of both sides, each with its members as another reader sees them."""
    for entry in recording:
        line = said(entry)
        if line is None:
            continue
        for found in decode_rpc(line):
            if isinstance(found, RpcMessage):
                yield str(entry["dir"]), json.loads(line), found
            else:
                # Only the client ever sent rubbish, to see what the agents make of it.
                assert entry["dir"] == ">"
                assert not isinstance(entry["msg"], dict)


@pytest.fixture(scope="module")
def conversations(recordings: list[list[Entry]]) -> list[list[Entry]]:
    """Those recordings where both sides speak JSON-RPC."""
    found = [each for each in recordings if any(map(initializes, each))]
    assert found
    return found


def initializes(entry: Entry) -> bool:
    message = entry.get("msg")
    return isinstance(message, dict) and cast("Entry", message).get("method") == "initialize"


def test_all_that_was_said_survives_any_size_of_reads(recordings: list[list[Entry]]) -> None:
    for recording in recordings:
        lines = [line for entry in recording if (line := said(entry)) is not None and line.strip()]
        stream = b"".join(line + b"\n" for line in lines)
        for size in (61, 4096):
            decoder = LineDecoder()
            found = [line for part in pieces(stream, size) for line in decoder.feed(part)]
            assert found == lines
            assert decoder.close() == []


def test_whatever_an_agent_said_is_a_frame_just_as_it_came_or_noise(
    recordings: list[list[Entry]],
) -> None:
    for recording in recordings:
        for line in filter(None, map(said, (each for each in recording if each["dir"] == "<"))):
            assert strip_wrapping(line) == (line if line.startswith(b"{") else None)


def test_json_rpc_messages_are_what_their_members_say(conversations: list[list[Entry]]) -> None:
    kinds: set[type] = set()
    for conversation in conversations:
        for _, members, found in messages(conversation):
            if "method" in members:
                kind: type = RpcRequest if "id" in members else RpcNotification
            else:
                kind = RpcErrorResponse if "error" in members else RpcResponse
            assert type(found) is kind
            kinds.add(kind)
            written = json.loads(encode_rpc(found, version="jsonrpc" in members))
            known = {"jsonrpc", "id", "method", "params", "result", "error"}
            assert written == {name: members[name] for name in members.keys() & known}
    assert kinds == {RpcRequest, RpcNotification, RpcResponse, RpcErrorResponse}


def test_an_agent_answers_what_it_was_asked_whatever_it_asks_itself(
    conversations: list[list[Entry]],
) -> None:
    clashes = 0
    for conversation in conversations:
        asked: dict[str, set[RpcId | None]] = {"<": set(), ">": set()}
        for who, _, found in messages(conversation):
            if isinstance(found, RpcRequest):
                asked[who].add(found.id)
            elif who == "<" and isinstance(found, RpcResponse | RpcErrorResponse):
                assert found.id is None or found.id in asked[">"]
        clashes += bool(asked["<"] & asked[">"])
    assert clashes  # both sides count from the same number
