"""Claude Code: its command line program, driven by the lines that it reads and writes."""

from sessionmgr_adapters.claude.adapter import ClaudeAdapter as ClaudeAdapter
from sessionmgr_adapters.claude.hooks import (
    ClaudeHook as ClaudeHook,
    ClaudeTool as ClaudeTool,
)
from sessionmgr_adapters.claude.options import ClaudeOptions as ClaudeOptions
