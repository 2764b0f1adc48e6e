"""The version of rowtide: a module without imports of rowtide, so that every package can import it."""

__version__ = "0.1.0"


def commit() -> str | None:
    """Return the short commit that is installed; ``None`` if neither Git nor pip knows it."""
    import json  # noqa: PLC0415 - only for rowtide --version
    import subprocess  # noqa: PLC0415
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    root = Path(__file__).resolve().parents[1]
    if (root / ".git").exists():
        command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return None
    try:
        source = json.loads(distribution("rowtide").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    found = source.get("vcs_info", {}).get("commit_id")
    return None if found is None else str(found)[:12]
