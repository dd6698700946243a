"""The store of events against SQLite without it."""
