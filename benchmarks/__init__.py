"""How fast we are, as ratios against others in the same run."""
