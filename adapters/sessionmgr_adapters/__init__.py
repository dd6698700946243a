"""The adapters that come with sessionmgr, one package for each provider."""
