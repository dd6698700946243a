"""Costs of batches, against xargs and in absolute terms."""
