"""The behaviours as a class of tests, for pytest and other collectors of `test_…` methods."""

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
    """The base class of an adapter's tests: a subclass sets `case` and has a test per behaviour."""

    case: ClassVar[AdapterCase]
    left_out: ClassVar[dict[str, str]] = {}
    """The behaviours that are not tested, with the reasons."""

    def __init_subclass__(cls) -> None:
        """Add the tests to the class."""
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
        """Yield the case, ready for a test.

        Args:
            place: A directory for the test alone.
        """
        await trio.lowlevel.checkpoint()
        yield self.case


def _test(behaviour: AdapterBehaviour) -> Callable[[AdapterConformance, Path], None]:
    def test(self: AdapterConformance, tmp_path: Path) -> None:
        from trio.testing import MockClock  # imports pytest if it is installed

        clock = MockClock(autojump_threshold=0) if self.case.virtual else None
        trio.run(behaviour, self.open_case, tmp_path, clock=clock)

    test.__name__ = f"test_{behaviour.name}"
    test.__qualname__ = f"{AdapterConformance.__qualname__}.{test.__name__}"
    test.__doc__ = behaviour.law.__doc__
    return test
