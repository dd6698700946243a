"""A model that costs nothing: a server on loopback that plays scripts to real agents."""

from sessionmgr.testing.model_server.log import Exchange as Exchange, Log as Log
from sessionmgr.testing.model_server.plan import Scripts as Scripts
from sessionmgr.testing.model_server.request import (
    Broken as Broken,
    Called as Called,
    Interrupted as Interrupted,
    Item as Item,
    ModelRequest as ModelRequest,
    Offer as Offer,
    Prompt as Prompt,
    Result as Result,
    Said as Said,
)
from sessionmgr.testing.model_server.script import (
    Call as Call,
    Cut as Cut,
    Fault as Fault,
    Hang as Hang,
    Headers as Headers,
    Limits as Limits,
    Malformed as Malformed,
    Refuse as Refuse,
    Reply as Reply,
    Say as Say,
    Script as Script,
    Stop as Stop,
    Think as Think,
    UsageLimit as UsageLimit,
    Use as Use,
    Wait as Wait,
    prompt_with as prompt_with,
)
from sessionmgr.testing.model_server.server import (
    ModelServer as ModelServer,
    open_model_server as open_model_server,
)
