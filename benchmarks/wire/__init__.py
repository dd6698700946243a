"""Costs from a child's lines to events: ours, others', and the lower bound."""
