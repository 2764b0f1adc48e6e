"""A private root filled from Debian's packages: nothing is installed, no right of root is needed.

The packages may be of a newer Debian than the machine runs (MySQL's server is only in sid). They are downloaded with
every library down to libc, and a program of the root is started with the root's own loader: see
`rowtide_stack.programs.catalogue`.
"""

import os
import shutil
import tempfile
from pathlib import Path

from rowtide_stack.errors import ProgramMissingError
from rowtide_stack.programs.host import run

__all__ = ["unpack_packages"]

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def unpack_packages(target: Path, suite: str, *packages: str) -> None:
    """Unpack packages of the Debian release ``suite``, with all that they depend on, into ``target``.

    Raises:
        ProgramMissingError: this machine has no apt-get that knows a Debian mirror.
    """
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise ProgramMissingError(
            f"{', '.join(packages)} come from Debian's packages: use Debian, or start a Docker engine"
        )
    with tempfile.TemporaryDirectory(prefix="rowtide-apt-") as name:
        folder = Path(name)
        apt = ["apt-get", "-q", *_private_apt(folder, suite)]
        run([*apt, "update"])
        plan = run([*apt, "install", "-y", "--no-install-recommends", "--print-uris", *packages])
        # Lines look like 'URI' FILE.deb SIZE HASH, where FILE is NAME_VERSION_ARCHITECTURE.deb
        files = [line.split()[1] for line in plan.splitlines() if line.startswith("'")]
        debs = folder / "debs"
        debs.mkdir()
        run([*apt, "download", *(file.split("_")[0] for file in files)], cwd=debs)
        for deb in sorted(debs.glob("*.deb")):
            run(["dpkg-deb", "-x", deb, target])


def _private_apt(folder: Path, suite: str) -> list[str]:
    """Options that give apt-get lists, a cache and an (empty) state of its own in ``folder``."""
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    (folder / "status").touch()  # nothing counts as installed, so everything is downloaded
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    (folder / "sources.list").write_text(f"deb {signed}{_mirror()} {suite} main\n")
    options = {
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::Etc::Preferences": "-",
        "Dir::Etc::PreferencesParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": folder / "status",
        "Dir::Cache": folder / "cache",
    }
    if os.geteuid() == 0:
        # apt's own user cannot write into a private temporary folder
        options["APT::Sandbox::User"] = Path("root")
    return [f"-o{key}={value}" for key, value in options.items()]


def _mirror() -> str:
    """The Debian mirror that this machine's apt is configured with."""
    listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    for uri in listed.split():
        # the other archives of a usual configuration are debian-security, debian-ports ...
        if uri.rstrip("/").rsplit("/", 1)[-1] == "debian":
            return uri.rstrip("/")
    raise ProgramMissingError("apt-get is configured with no mirror of Debian: add one, or start a Docker engine")
