"""The Gemini adapter: runs use Gemini CLI, in a process for each run."""

from sessionmgr_adapters.gemini.adapter import GeminiAdapter as GeminiAdapter
from sessionmgr_adapters.gemini.options import GeminiOptions as GeminiOptions
