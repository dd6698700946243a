"""Settings: their files, variables and flags, and which of them are trusted."""
