"""How long the command takes to be there."""
