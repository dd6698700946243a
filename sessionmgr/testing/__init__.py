"""The test kit for programs and adapters that use this library."""

from sessionmgr.testing.names import __dir__ as __dir__, __getattr__ as __getattr__
