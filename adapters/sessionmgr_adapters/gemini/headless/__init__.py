"""Gemini CLI without a terminal: one process for each run."""

from sessionmgr_adapters.gemini.headless.adapter import (
    GeminiHeadlessAdapter as GeminiHeadlessAdapter,
)
from sessionmgr_adapters.gemini.headless.driver import HeadlessRun as HeadlessRun
