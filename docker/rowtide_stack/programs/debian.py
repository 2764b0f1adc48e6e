"""Unpacks Debian packages into a folder, without installing them and without root privileges.

The packages may be from a newer release than the machine's (only sid has MySQL's server). All libraries including libc
are unpacked too, and programs are started with the dynamic loader of the folder: see `catalogue.mysql_command`.
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
    """Unpack packages of the Debian release ``suite`` and all their dependencies into ``target``.

    Raises:
        ProgramMissingError: this machine has no apt-get, or apt-get has no Debian mirror.
    """
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise ProgramMissingError(f"{', '.join(packages)} are Debian packages: use Debian, or start a Docker engine")
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
    """Options by which apt-get keeps its lists, its cache and an empty state in ``folder``."""
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    (folder / "status").touch()  # no package counts as installed, so all are downloaded
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
        # The user _apt cannot write into a private temporary folder
        options["APT::Sandbox::User"] = Path("root")
    return [f"-o{key}={value}" for key, value in options.items()]


def _mirror() -> str:
    """Return the Debian mirror in the apt configuration of this machine."""
    listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    for uri in listed.split():
        # A configuration usually has other archives too: debian-security, debian-ports ...
        if uri.rstrip("/").rsplit("/", 1)[-1] == "debian":
            return uri.rstrip("/")
    raise ProgramMissingError("apt-get has no Debian mirror: add one to its sources, or start a Docker engine")
