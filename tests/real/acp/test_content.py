"""What every agent passes on: images, reasoning, usage and cost."""

from __future__ import annotations

import base64
from typing import Final

from sessionmgr.model import Provenance
from sessionmgr.testing.model_server import ModelSay, ModelThink, ModelUse, prompt_with
from tests.real.acp.agents import InstalledAcpAgent
from tests.real.acp.harness import AcpHarness
from tests.real.acp.limits import LEFT_OUT, UNKNOWN, outcome_of
from tests.real.acp.test_scripts import PNG
from tests.real.harness import see

SEEN: Final = "seen by the model"
REPORTED: Final = "reported"
THOUGHT: Final = "I think of it."


async def test_what_goes_in_and_comes_out_is_passed_on(
    house: AcpHarness, acp_agent: InstalledAcpAgent
) -> None:
    image = house.place() / "image.png"
    image.write_bytes(base64.b64decode(PNG))
    word = house.word()
    reply = [ModelThink(text=THOUGHT), ModelSay(text="Done."), ModelUse(input=700, output=30)]
    session = await house.session("full_auto")
    run = await house.submit(session, prompt_with([reply], word), images=[str(image)])
    played = await see(run)
    result = played.result
    assert result.text == "Done.", result
    turns = [each for each in house.server.log.asked if each.purpose == "turn"]
    thoughts = [each.content for each in played.events if each.type == "reasoning_received"]
    found = {
        "an image": SEEN if [each.data for each in turns[0].images] == [PNG] else LEFT_OUT,
        "reasoning": REPORTED if THOUGHT in "".join(thoughts) else LEFT_OUT,
        "usage": REPORTED if result.usage.output == 30 else UNKNOWN,
        "cost": UNKNOWN if result.cost.provenance is Provenance.UNKNOWN else REPORTED,
    }
    usual = {"an image": SEEN, "reasoning": REPORTED, "usage": REPORTED, "cost": REPORTED}
    assert found == {case: outcome_of(acp_agent.id, case, usual[case]) for case in usual}
