"""What it costs to run sessions: each event on its whole way, each run, each session at rest."""
