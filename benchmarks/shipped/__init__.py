"""What an event costs in the adapters that ship: their agents' frames, played by a child."""
