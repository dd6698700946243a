"""The conformance of the Gemini adapter, with players in place of Gemini."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from sessionmgr.model import Json
from sessionmgr.testing.adapter_conformance import AdapterCase, AdapterConformance, Play
from sessionmgr.testing.player import Dialect, UntilClosedStep, WriteStep
from sessionmgr_adapters.gemini.headless import GeminiHeadlessAdapter, driver

SESSION: Final = "00000000-0000-4000-8000-000000000001"


def _line(**frame: Json) -> bytes:
    return json.dumps(frame, ensure_ascii=False).encode() + b"\n"


def _word(text: str) -> bytes:
    return _line(type="message", role="assistant", content=text, delta=True)


END: Final = _line(type="result", status="success", stats={})
# An agent that acts on its prompt, and always answers in a resumed session.
AGENT: Final = """
say() { printf '{"type":"message","role":"assistant","content":"%s"}\\n' "$1"; }
call() { printf '{"type":"%s","tool_name":"t","tool_id":"c"}\\n' "$1"; }
end() { printf '{"type":"result","status":"%s","error":{"message":"no"}}\\n' "$1"; }
prompt=$(cat)
for each; do case $each in
    --session-id=*) id=${each#*=};;
    --resume=*) id=${each#*=}; prompt=answer;;
esac; done
printf '{"type":"init","session_id":"%s"}\\n' "$id"
case $prompt in
    fail) say half; end error; exit 144;;
    hang) say half; sleep 1000;;
    deaf) trap '' INT TERM; say half; while :; do sleep 0.1; done;;
    *) say 'I look.'; call tool_use; call tool_result; say do; say ne; end success;;
esac
"""


class TestHeadless(AdapterConformance):
    case = AdapterCase(
        adapter=GeminiHeadlessAdapter,
        answers=Play(prompt="answer", text="done"),
        fails=Play(prompt="fail", text="half"),
        hangs=Play(prompt="hang", text="half"),
        deaf=Play(prompt="deaf", text="half"),
        dialect=Dialect(
            opening=(UntilClosedStep(), WriteStep(_line(type="init", session_id=SESSION))),
            word=_word,
            end=END,
        ),
        grace=1.0,
        moments=4,
    )

    @pytest.fixture(autouse=True)
    def _in_a_hurry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Shorten the time limits for unresponsive programs."""
        monkeypatch.setattr(driver, "EXIT_WAIT", 1.0)

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        program = place / "gemini"
        program.write_text(AGENT)
        options: dict[str, Json] = {"command": ["/bin/sh", str(program)]}
        yield replace(
            self.case,
            answers=replace(self.case.answers, options=options),
            **{
                name: replace(play, options=options)
                for name in ("fails", "hangs", "deaf")
                if (play := getattr(self.case, name)) is not None
            },
        )
