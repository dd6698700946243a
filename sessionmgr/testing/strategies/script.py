"""Strategies for scripts of the scripted provider, including badly behaved ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from sessionmgr.testing.script import (
    Ask,
    Crash,
    CrashAdapter,
    Deaf,
    Fail,
    Finish,
    Flood,
    Hang,
    Hear,
    Leave,
    RateLimited,
    Say,
    Script,
    Step,
    Think,
    Tool,
    TurnEnd,
    Use,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from hypothesis.strategies import SearchStrategy

MOMENTS: Final = st.sampled_from([0.0, 0.0, 0.01, 0.5, 1.0, 2.0, 5.0, 6.0])
"""Seconds: about as long as the clocks of tests."""


def steps(*, tools: Collection[str] = ("Bash", "Edit", "Read")) -> SearchStrategy[Step]:
    """Return a strategy for one step; requests for approval name one of `tools`."""
    return st.one_of(
        st.builds(Say, text=st.sampled_from(["", "a", "hello"]), deltas=st.integers(0, 2)),
        st.builds(Think, text=st.just("hm")),
        st.builds(Tool, name=st.just("make"), takes=MOMENTS, fails=st.booleans()),
        st.builds(Ask, tool=st.sampled_from(sorted(tools)), withdraw_after=st.none() | MOMENTS),
        st.builds(Wait, seconds=MOMENTS),
        st.builds(Use, output=st.integers(0, 9), usd=st.none() | st.just(0.25)),
        st.builds(Flood, events=st.integers(1, 20)),
        st.builds(TurnEnd, open_tasks=st.integers(0, 1)),
        st.builds(Deaf, seconds=MOMENTS),
        st.sampled_from(
            [
                Finish(),
                Fail(),
                RateLimited(),
                Crash(depth=1),
                Leave(),
                Hear(),
                Hang(),
                CrashAdapter(),
            ]
        ),
    )


def scripts(
    *, tools: Collection[str] = ("Bash", "Edit", "Read"), longest: int = 6
) -> SearchStrategy[Script]:
    """Return a strategy for scripts of up to `longest` steps; some never end by themselves."""
    return st.builds(
        Script,
        steps=st.lists(steps(tools=tools), max_size=longest).map(tuple),
        starts=st.sampled_from([True, True, True, False]),
        interrupt=st.sampled_from(["end", "done", "ignore", "crash", "hang"]),
        unwinds=st.sampled_from([0.0, 1.0]),
        append=st.sampled_from(["accept", "accept", "refuse", "crash", "hang", "slow", "lost"]),
    )
