"""Usage, as increments."""

from __future__ import annotations

import pytest

from sessionmgr.model import (
    Json,
    encode_json,
)
from sessionmgr_adapters.claude.frames import ResultFrame, decode_lines
from sessionmgr_adapters.claude.state import ProcessUsage

USAGE: Json = {"m": {"inputTokens": 30, "outputTokens": 6, "costUSD": 0.3}}


def result(**more: Json) -> ResultFrame:
    (found,) = decode_lines([encode_result({"modelUsage": USAGE, "total_cost_usd": 0.3, **more})])
    assert isinstance(found, ResultFrame)
    return found


def encode_result(fields: dict[str, Json]) -> bytes:
    return encode_json({"type": "result", "session_id": "s", **fields})


def test_what_an_older_one_says_is_read_like_a_meter() -> None:
    spending = ProcessUsage()
    first = spending.add_result(result())
    assert first is not None
    assert (first.usage.input, first.cost) == (30, 0.3)
    assert spending.add_result(result()) is None


def test_of_a_session_gone_on_with_only_what_is_new_is_booked() -> None:
    turn: Json = {"input_tokens": 10, "output_tokens": 2}
    spending = ProcessUsage(resumed=True)
    first = spending.add_result(result(usage=turn))
    assert first is not None
    assert (first.usage.input, first.usage.output, first.cost) == (10, 2, None)
    more: Json = {"m": {"inputTokens": 40, "outputTokens": 8, "costUSD": 0.4}}
    second = spending.add_result(result(modelUsage=more, total_cost_usd=0.4))
    assert second is not None
    assert second.usage.input == 10
    assert second.cost == pytest.approx(0.1)
    assert ProcessUsage(resumed=True).add_result(result()) is None
