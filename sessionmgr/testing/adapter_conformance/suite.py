"""The laws as a class of tests, for pytest or whatever collects methods named `test_…`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar

import trio

from sessionmgr.testing.adapter_conformance.all_behaviours import ADAPTER_BEHAVIOURS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviour
    from sessionmgr.testing.adapter_conformance.case import AdapterCase


class AdapterConformance:
    """Name a `case` in a subclass, and each law that its case allows to try is a test of it."""

    case: ClassVar[AdapterCase]
    left_out: ClassVar[dict[str, str]] = {}
    """The laws that are not tried, and why."""

    def __init_subclass__(cls) -> None:
        """Give the class its tests."""
        super().__init_subclass__()
        cls.left_out = {}
        for each in ADAPTER_BEHAVIOURS:
            why = each.left_out(cls.case)
            if why is None:
                setattr(cls, f"test_{each.name}", _test(each))
            else:
                cls.left_out[each.name] = why

    @asynccontextmanager
    async def open_case(self, place: Path) -> AsyncGenerator[AdapterCase, None]:
        """Make the adapter ready, with the directory `place` for its own.

        Args:
            place: A directory of its own.
        """
        await trio.lowlevel.checkpoint()
        yield self.case


def _test(behaviour: AdapterBehaviour) -> Callable[[AdapterConformance, Path], None]:
    def test(self: AdapterConformance, tmp_path: Path) -> None:
        from trio.testing import MockClock  # which imports pytest, if that is there

        clock = MockClock(autojump_threshold=0) if self.case.virtual else None
        trio.run(behaviour, self.open_case, tmp_path, clock=clock)

    test.__name__ = f"test_{behaviour.name}"
    test.__qualname__ = f"{AdapterConformance.__qualname__}.{test.__name__}"
    test.__doc__ = behaviour.law.__doc__
    return test
