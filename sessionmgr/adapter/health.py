"""Health of a provider: whether it could be used now."""

from __future__ import annotations

from typing import Literal

import msgspec


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a health check; `detail` gives the problem and the remedy.

    `skip`: its program is not installed. `fail`: it is installed, but no run could succeed. If only
    the provider itself could tell, the state is `ok`, and `detail` says that it is unknown.
    """

    state: Literal["ok", "skip", "fail"] = "ok"
    detail: str = ""
    """If the provider is not usable: `problem; remedy`."""
