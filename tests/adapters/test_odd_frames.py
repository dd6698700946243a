"""Malformed frames anywhere: no decoder crashes on them, and all resulting events can be stored.

The frames are recorded from real programs, with some of their values replaced.
"""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, strategies as st

from sessionmgr.manager.validate_events import validate_events
from sessionmgr.model import Event, Json, encode_event
from sessionmgr.wire import RpcNotification, RpcRequest
from sessionmgr_adapters.claude import frames as claude, normalise as of_claude
from sessionmgr_adapters.claude.state import ClaudeState as ClaudeState, ProcessUsage
from sessionmgr_adapters.codex import decode as codex_lines, normalise as of_codex
from sessionmgr_adapters.codex.state import CodexState as CodexState

GOLDEN = Path(__file__).parents[1] / "golden"
FIGURES: list[Json] = [None, True, -1, 0, 2**63, 10**30, 1e300, -1e300, 1763500000000, 9e15]
OTHERS: list[Json] = ["", "x", "\ud800", "1e999", [], {}, [1], {"a": 1}, [[]]]


def said(agent: str) -> list[str]:
    """Return each kind of frame once, as it was recorded."""
    found: dict[str, str] = {}
    for path in sorted((GOLDEN / agent).rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry: dict[str, Json] = json.loads(line)
            match entry:
                case {"dir": "<", "msg": dict(msg)}:
                    found.setdefault(kind_of(msg), json.dumps(msg))
                case _:
                    pass
    return list(found.values())


def kind_of(msg: dict[str, Json]) -> str:
    names = [str(msg.get(name)) for name in ("type", "subtype", "method", "id")]
    match msg:
        case {"params": {"item": {"type": item}}}:
            return "/".join([*names, str(item)])
        case _:
            return "/".join(names)


def places(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, Json]] = []
    match value:
        case dict():
            inner += value.items()
        case list():
            inner += enumerate(value)
        case _:
            pass
    return [path, *(found for name, each in inner for found in places(each, (*path, name)))]


@st.composite
def odd_frames(draw: st.DrawFn, frames: list[str]) -> Json:
    frame: Json = json.loads(draw(st.sampled_from(frames)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(frame)[1:] or [("type",)]))
        frame = _with(frame, path, draw(st.sampled_from(FIGURES + OTHERS)))
    return frame


def _with(value: Json, path: tuple[str | int, ...], odd: Json) -> Json:
    if not path:
        return odd
    name, *rest = path
    if isinstance(value, dict) and isinstance(name, str):
        return {**value, name: _with(value.get(name), tuple(rest), odd)}
    if isinstance(value, list) and isinstance(name, int):
        return [
            _with(each, tuple(rest), odd) if n == name else each for n, each in enumerate(value)
        ]
    return odd


def keep(events: list[Event]) -> None:
    for event in validate_events(tuple(events))[0]:
        encode_event(event)


CLAUDE = said("claude")
CODEX = [each for each in said("codex") if '"method"' in each]


@given(st.lists(odd_frames(CLAUDE), max_size=8))
def test_claude_code_may_say_what_it_likes(frames: list[Json]) -> None:
    state, spending = ClaudeState(), ProcessUsage()
    for frame in claude.decode_lines([json.dumps(each).encode() for each in frames]):
        keep(of_claude.normalise(frame, state))
        if isinstance(frame, claude.ResultFrame):
            booked = spending.add_result(frame)
            keep([] if booked is None else [booked])


@given(st.lists(odd_frames(CODEX), max_size=8))
def test_codex_may_say_what_it_likes(frames: list[Json]) -> None:
    state = CodexState()
    state.thread, state.turn, state.started = "t", "u", True
    for frame in frames:
        match frame:
            case {"method": str(method), "id": int(id_) | str(id_), "params": params}:
                codex_lines.peer_request_of(RpcRequest(id_, method, json.dumps(params).encode()))
            case {"method": str(method), "params": params}:
                notice = codex_lines.decode_notice(
                    RpcNotification(method, json.dumps(params).encode())
                )
                [at_once] = codex_lines.read_notices([json.dumps(frame).encode()])
                assert at_once is None or at_once == notice
                keep(of_codex.normalise(notice, state))
            case _:
                pass
