"""Every law that an adapter must keep, as tests for yours.

The whole of it, in a test module of your own:

    class TestEcho(AdapterConformance):
        case = AdapterCase(adapter=Echo, answers=Play(prompt="hi", text="hi"), virtual=True)

Each law is a test; pytest needs no plugin for it. A case names prompts, and what they must come
to: which one fails, which one hangs, which one asks. The more it names, the more laws are tried;
`TestEcho.left_out` says which were not, and why. Where an adapter has to be made first (with a
mock in the place of its sdk, say), override `open_case`.

Without pytest, `ADAPTER_BEHAVIOURS` is the same: `await behaviour(open_case, place)`. What does
not hold raises AssertionError.
"""

from sessionmgr.testing.adapter_conformance.all_behaviours import (
    ADAPTER_BEHAVIOURS as ADAPTER_BEHAVIOURS,
)
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviour as AdapterBehaviour
from sessionmgr.testing.adapter_conformance.case import AdapterCase as AdapterCase, Play as Play
from sessionmgr.testing.adapter_conformance.suite import AdapterConformance as AdapterConformance

__all__ = ["ADAPTER_BEHAVIOURS", "AdapterBehaviour", "AdapterCase", "AdapterConformance", "Play"]
