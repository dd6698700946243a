"""Any provider served as an agent of the Agent Client Protocol (ACP) on two streams."""

from sessionmgr.acp_server.offer import AgentOffer as AgentOffer, probe_offer as probe_offer
from sessionmgr.acp_server.server import AcpServer as AcpServer
from sessionmgr.acp_server.stdio import protocol_streams as protocol_streams

__all__ = ["AcpServer", "AgentOffer", "probe_offer", "protocol_streams"]
