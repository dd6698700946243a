"""Kimi: kimi-cli 1.50 by its wire, or its successor kimi-code over ACP."""

from sessionmgr_adapters.kimi.adapter import KimiAdapter as KimiAdapter
from sessionmgr_adapters.kimi.options import KimiOptions as KimiOptions
