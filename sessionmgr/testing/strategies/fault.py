"""Strategies for faults: of a store, and of an agent's program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from sessionmgr.testing.faulty_store import Fault, FaultKind
from sessionmgr.testing.player import CHAOS, Misbehaviour
from sessionmgr.testing.strategies.script import MOMENTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from hypothesis.strategies import SearchStrategy


def faults(kinds: Collection[FaultKind] = tuple(FaultKind)) -> SearchStrategy[Fault]:
    """Return a strategy for one fault of a `FaultyStore`."""
    lasting = st.sampled_from([0.5, 5.0, 30.0, 90.0])
    return st.builds(Fault, kind=st.sampled_from(sorted(kinds)), after=MOMENTS, seconds=lasting)


def chaos() -> SearchStrategy[Misbehaviour]:
    """Return a strategy for an agent's misbehaviour."""
    return st.sampled_from(CHAOS)
