"""Ready-made parts of an adapter."""

from sessionmgr.adapter.kit.names import __dir__ as __dir__, __getattr__ as __getattr__
