"""The protocol's own JSON Schemas, from its library for TypeScript.

Where the library is not installed, messages in memory are not validated; the tests of the two
libraries' clients are skipped there, and fail in CI.
"""

import json
import os
from functools import cache
from typing import Any, Final

import pytest

from tests.real.agent_programs import place, program_of

jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="the extra `schema` is not installed")

SDK: Final = "acp-sdk", "2.4.0"
SDK_PYTHON: Final = "acp-python", "0.12.1"


def is_installed() -> bool:
    """Return whether messages can be validated; in CI they must be."""
    is_required = os.environ.get("SESSIONMGR_AGENTS_REQUIRED", "") not in ("", "0")
    return is_required or (place() / "-".join(SDK) / "bin" / SDK[0]).exists()


@cache
def _definitions(version: int) -> dict[str, Any]:
    package = program_of(*SDK).parents[1] / "node_modules" / "@agentclientprotocol" / "sdk"
    path = package / "schema" / f"v{version}" / "schema.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["$defs"]
    return found


@cache
def _validator(version: int, name: str) -> Any:
    schema = {"$ref": f"#/$defs/{name}", "$defs": _definitions(version)}
    return jsonschema_rs.validator_for(schema)


@cache
def _name(version: int, method: str, kind: str) -> str | None:
    for name, each in _definitions(version).items():
        if each.get("x-method") == method and name.endswith(kind):
            return name
    return None


def check(version: int, method: str, kind: str, value: object) -> None:
    """Fail if a value does not match the schema of the method's Request, Response or Notification.

    Methods that the protocol does not define begin with an underscore, and have no schema.
    """
    if method.startswith("_") or not is_installed():
        return
    name = _name(version, method, kind)
    assert name is not None, f"{method} has no {kind} in version {version}"
    _validator(version, name).validate(value)


def check_error(version: int, value: object) -> None:
    """Fail if a value does not match the schema of an error."""
    if is_installed():
        _validator(version, "Error").validate(value)
