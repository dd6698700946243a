"""Bytes to frames and back: lines, JSON-RPC, server-sent events. No I/O."""
