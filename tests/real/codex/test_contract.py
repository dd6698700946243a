"""The contract detects invalid traffic."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessionmgr.model import Json
from sessionmgr.testing.player import RecordedLine
from tests.real.codex.contract import contract_of

ASK: Json = {"id": 1, "method": "thread/unsubscribe", "params": {"threadId": "t"}}
ANSWER: Json = {"id": 1, "result": {"status": "unsubscribed"}}
# The messages, in order; and words of the expected violation.
TALKS: list[tuple[list[tuple[str, Json]], str | None]] = [
    ([(">", {"method": "initialized"}), (">", ASK), ("<", ANSWER)], None),
    ([(">", ASK), ("<", {"id": 1, "error": {"code": -32600, "message": "no"}})], None),
    ([("<", {"method": "thread/closed", "params": {"threadId": "t"}})], None),
    ([("<", ANSWER)], "an answer to nothing"),
    ([(">", ASK), ("<", {"id": 1, "result": {"status": "gone"}})], "gone"),
    ([(">", ASK), ("<", {"id": 1, "error": {"message": "no"}})], "code"),
    ([(">", {"id": 1, "method": "thread/forget", "params": {}})], "unknown method"),
    ([(">", {"id": 1, "method": "thread/unsubscribe", "params": {}})], "threadId"),
    ([("<", {"method": "thread/closed", "params": {"threadId": 7}})], "threadId"),
    (
        [(">", {"id": 1, "method": "thread/unsubscribe", "params": {"threadId": "t", "a": 1}})],
        "no field a",
    ),
]


async def test_whatever_is_not_as_agreed_is_found_out(codex_program: tuple[str, Path]) -> None:
    contract = await contract_of(codex_program[1])
    for talk, wrong in TALKS:
        entries = [RecordedLine(t=0.0, dir=who, msg=said) for who, said in talk]  # type: ignore[arg-type]
        faults = contract.faults(entries)
        assert bool(faults) == (wrong is not None), (talk, faults)
        assert wrong is None or any(wrong in each for each in faults), (talk, faults)


async def test_a_line_that_is_cut_by_a_signal_is_no_fault(codex_program: tuple[str, Path]) -> None:
    contract = await contract_of(codex_program[1])
    cut = RecordedLine(t=0.0, dir="<", line='{"meth', note="without a newline")
    ends: list[Json] = [{"exit_code": 0, "signal": None}, {"exit_code": None, "signal": 9}]
    found = [contract.faults([cut, RecordedLine(t=0.0, dir="#", msg=end)]) for end in ends]
    assert [bool(faults) for faults in found] == [True, False]


@pytest.mark.parametrize("line", ["noise", ""])
async def test_what_is_no_message_is_found_out(codex_program: tuple[str, Path], line: str) -> None:
    contract = await contract_of(codex_program[1])
    assert contract.faults([RecordedLine(t=0.0, dir="<", line=line)])
