"""Standard pipes of a child: our ends and its ends."""

from __future__ import annotations

import contextlib
import os


class StandardPipes:
    """Both ends of a child's standard streams; `stdin=False` connects its stdin to /dev/null.

    Raises:
        OSError: The system has no more descriptors. All ends were closed.
    """

    __slots__ = ("far", "near")

    def __init__(self, *, stdin: bool) -> None:
        with contextlib.ExitStack() as on_failure:

            def keep(first: int, second: int) -> tuple[int, int]:
                on_failure.callback(os.close, first)
                on_failure.callback(os.close, second)
                return first, second

            near_in: int | None = None
            if stdin:
                far_in, near_in = keep(*os.pipe())
            else:
                far_in = os.open(os.devnull, os.O_RDONLY)
                on_failure.callback(os.close, far_in)
            near_out, far_out = keep(*os.pipe())
            near_err, far_err = keep(*os.pipe())
            on_failure.pop_all()
        self.near = (near_in, near_out, near_err)
        self.far = (far_in, far_out, far_err)

    def close_child_ends(self) -> None:
        """Close the child's ends in this process."""
        for each in self.far:
            os.close(each)

    def close(self) -> None:
        """Close all ends."""
        self.close_child_ends()
        for each in self.near:
            if each is not None:
                os.close(each)
