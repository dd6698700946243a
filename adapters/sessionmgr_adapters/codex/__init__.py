"""The Codex adapter: runs use threads of an app-server, over JSON-RPC on its pipes."""

from sessionmgr_adapters.codex.adapter import CodexAdapter as CodexAdapter
from sessionmgr_adapters.codex.options import CodexOptions as CodexOptions, CodexTool as CodexTool
