"""Owners of process trees on Linux: the spawner, its reapers and their launcher."""
