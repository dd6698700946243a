"""Our answers to the agent's requests, and the content of prompts; the same in both versions.

The answer to a request that needs none is `{}`.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter.kit import PromptImage
    from sessionmgr.model import Json

EMPTY: Final[dict[str, Json]] = {}


def permission_answer(option_id: str | None) -> dict[str, Json]:
    """Return the chosen option of a request for permission; None if the turn was cancelled."""
    if option_id is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def elicitation_answer(
    action: Literal["accept", "decline", "cancel"], content: Mapping[str, Json] | None = None
) -> dict[str, Json]:
    """Return the answer to an elicitation; `content` is that of an accepted form."""
    return {"action": action} if content is None else {"action": action, "content": {**content}}


def file_answer(text: str) -> dict[str, Json]:
    """Return the text of a file."""
    return {"content": text}


def terminal_created(terminal_id: str) -> dict[str, Json]:
    """Return our name for a command that was started."""
    return {"terminalId": terminal_id}


def terminal_exit(exit_code: int | None, signal: str | None) -> dict[str, Json]:
    """Return how a command ended."""
    return {"exitCode": exit_code, "signal": signal}


def terminal_output(
    output: str, *, truncated: bool, exit_status: dict[str, Json] | None = None
) -> dict[str, Json]:
    """Return the output of a command so far; `exit_status` is a `terminal_exit`."""
    answer: dict[str, Json] = {"output": output, "truncated": truncated}
    return answer if exit_status is None else {**answer, "exitStatus": exit_status}


# --- content of prompts --------------------------------------------------------------------------


def text_block(text: str) -> dict[str, Json]:
    """Return a text of a prompt."""
    return {"type": "text", "text": text}


def image_block(image: PromptImage) -> dict[str, Json]:
    """Return an image of a prompt."""
    data = base64.b64encode(image.data).decode()
    return {"type": "image", "mimeType": image.media_type, "data": data}


def resource_link(uri: str, name: str) -> dict[str, Json]:
    """Return a reference to a resource, which the agent may read."""
    return {"type": "resource_link", "uri": uri, "name": name}
