"""Codex: its app-server, many threads in one process, driven by JSON-RPC over its pipes."""

from sessionmgr_adapters.codex.adapter import CodexAdapter as CodexAdapter
from sessionmgr_adapters.codex.options import CodexOptions as CodexOptions, CodexTool as CodexTool
