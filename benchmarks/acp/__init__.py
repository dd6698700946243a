"""Costs of the adapter of agents over ACP, against its app-server driven raw and another SDK."""
