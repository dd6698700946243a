"""The test kit for those who build on this library."""

from sessionmgr.testing.names import __dir__ as __dir__, __getattr__ as __getattr__
