"""A scripted model at no cost: a server on loopback that plays scripts to real agents."""

from sessionmgr.testing.model_server.choose_reply import Scripts as Scripts
from sessionmgr.testing.model_server.images import RequestImage as RequestImage
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment as IsolatedEnvironment
from sessionmgr.testing.model_server.request import (
    ModelMessage as ModelMessage,
    ModelRequest as ModelRequest,
    ModelToolCall as ModelToolCall,
    ModelToolResult as ModelToolResult,
    RequestItem as RequestItem,
    ToolOffer as ToolOffer,
    TruncatedReply as TruncatedReply,
    UserInterrupt as UserInterrupt,
    UserPrompt as UserPrompt,
)
from sessionmgr.testing.model_server.request_log import (
    Exchange as Exchange,
    RequestLog as RequestLog,
)
from sessionmgr.testing.model_server.script import (
    ModelCall as ModelCall,
    ModelCut as ModelCut,
    ModelEmpty as ModelEmpty,
    ModelFault as ModelFault,
    ModelHang as ModelHang,
    ModelHeaders as ModelHeaders,
    ModelLimits as ModelLimits,
    ModelMalformed as ModelMalformed,
    ModelRefuse as ModelRefuse,
    ModelReply as ModelReply,
    ModelSay as ModelSay,
    ModelScript as ModelScript,
    ModelStop as ModelStop,
    ModelThink as ModelThink,
    ModelUsageLimit as ModelUsageLimit,
    ModelUse as ModelUse,
    ModelWait as ModelWait,
    parse_script as parse_script,
    prompt_with as prompt_with,
)
from sessionmgr.testing.model_server.server import (
    ModelServer as ModelServer,
    open_model_server as open_model_server,
)

__all__ = [
    "Exchange",
    "IsolatedEnvironment",
    "ModelCall",
    "ModelCut",
    "ModelEmpty",
    "ModelFault",
    "ModelHang",
    "ModelHeaders",
    "ModelLimits",
    "ModelMalformed",
    "ModelMessage",
    "ModelRefuse",
    "ModelReply",
    "ModelRequest",
    "ModelSay",
    "ModelScript",
    "ModelServer",
    "ModelStop",
    "ModelThink",
    "ModelToolCall",
    "ModelToolResult",
    "ModelUsageLimit",
    "ModelUse",
    "ModelWait",
    "RequestImage",
    "RequestItem",
    "RequestLog",
    "Scripts",
    "ToolOffer",
    "TruncatedReply",
    "UserInterrupt",
    "UserPrompt",
    "open_model_server",
    "parse_script",
    "prompt_with",
]
