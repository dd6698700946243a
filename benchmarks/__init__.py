"""Benchmarks: costs as ratios to other programs that run in the same rounds."""
