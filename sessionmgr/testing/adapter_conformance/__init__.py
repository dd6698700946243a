"""Conformance tests for adapters: every behaviour that an adapter must have.

A complete test module:

    class TestEcho(AdapterConformance):
        case = AdapterCase(adapter=Echo, answers=Play(prompt="hi", text="hi"), virtual=True)

Each behaviour is a test; pytest needs no plugin for it. A case names prompts and their results: one
that fails, one that hangs, one that asks for approval. The more prompts it names, the more
behaviours are tested; `TestEcho.left_out` lists the others with the reasons. If an adapter must be
created first (with a mock `sdk`, for example), override `open_case`.

Without pytest, use `ADAPTER_BEHAVIOURS`: `await behaviour(open_case, place)`. A violation raises
AssertionError.
"""

from sessionmgr.testing.adapter_conformance.all_behaviours import (
    ADAPTER_BEHAVIOURS as ADAPTER_BEHAVIOURS,
)
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviour as AdapterBehaviour
from sessionmgr.testing.adapter_conformance.case import AdapterCase as AdapterCase, Play as Play
from sessionmgr.testing.adapter_conformance.suite import AdapterConformance as AdapterConformance

__all__ = ["ADAPTER_BEHAVIOURS", "AdapterBehaviour", "AdapterCase", "AdapterConformance", "Play"]
