"""Costs per event of the shipped adapters: a child plays the frames of their agents."""
