"""Process trees on Linux: the spawner, its reapers and the launcher that uses them."""
