"""Ready-made parts of an adapter."""
