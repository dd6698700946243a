"""Amp: its command line program, driven by the lines that it reads and writes."""

from sessionmgr_adapters.amp.adapter import AmpAdapter as AmpAdapter
from sessionmgr_adapters.amp.options import AmpOptions as AmpOptions
