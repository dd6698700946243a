"""Start-up time of the command."""
