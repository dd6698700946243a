"""A scripted provider that the installed command finds, as if a package had brought it."""

from pathlib import Path

from sessionmgr.testing.scripted_provider import scripted

Agent = scripted("scripted")


def install_scripted_agent(directory: Path) -> str:
    """Make the provider known to commands that have this directory on their path; return that."""
    info = directory / "scripted_agent-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-agent\nVersion: 1\n")
    points = "[sessionmgr.adapters]\nscripted = tests.cli.scripted_agent:Agent\n"
    (info / "entry_points.txt").write_text(points)
    return str(directory)
