"""Costs of `sessionmgr.otp` against trio itself, the BEAM and its predecessors on Python."""
