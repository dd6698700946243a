"""Adapter for agents that speak the Agent Client Protocol (ACP), and a plain client of them."""

from sessionmgr_adapters.acp.adapter import AcpAdapter as AcpAdapter
from sessionmgr_adapters.acp.bundled_agents import quirks_of as quirks_of
from sessionmgr_adapters.acp.client import (
    AcpClient as AcpClient,
    allow_once as allow_once,
    open_client as open_client,
    option_of_kind as option_of_kind,
    reject_once as reject_once,
)
from sessionmgr_adapters.acp.client_session import (
    AcpClientSession as AcpClientSession,
    AcpClientTurn as AcpClientTurn,
)
from sessionmgr_adapters.acp.errors import AcpClientError as AcpClientError
from sessionmgr_adapters.acp.options import AcpOptions as AcpOptions
from sessionmgr_adapters.acp.registry import AgentChoice as AgentChoice
from sessionmgr_adapters.acp.updates import AgentChunk as AgentChunk
