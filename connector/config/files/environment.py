"""Properties from the environment: ``ROWTIDE_DATABASE_PASSWORD`` overrides ``database.password``; pure.

After ``ROWTIDE_``, one underscore stands for a dot, two for an underscore, three for a dash. The case of a known
property's name is restored.
"""

import re
from collections.abc import Iterable, Mapping

PREFIX = "ROWTIDE_"
CONFIG_VARIABLE = "ROWTIDE_CONFIG"
"""The variable with the path of the configuration file, for a worker that is started without the command line."""

_NOT_PROPERTIES = re.compile(
    r"ROWTIDE_(?:CONFIG|LOG_LEVEL|PURE_PYTHON|(?:SPARK|STACK|TEST|CACHE|BENCH|DEMO|ORACLE)(?:_.*)?)"
)
# Kubernetes injects these into every container of a namespace that has a service named "rowtide" or "rowtide-...":
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_A_SERVICE = re.compile(
    r"ROWTIDE(?:_\w+)?_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
_SERVICE_URL = re.compile(r"(?:tcp|udp|sctp)://.*")
_SEPARATORS = {1: ".", 2: "_", 3: "-"}


def property_name(variable: str, known: Iterable[str] = ()) -> str:
    """Return the property that a variable sets, with the upper-case letters of a ``known`` name."""
    plain = re.sub("_{1,3}", lambda match: _SEPARATORS[len(match[0])], variable.removeprefix(PREFIX).lower())
    return next((name for name in known if name.lower() == plain), plain)


def overrides(environ: Mapping[str, str], known: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the properties that the environment sets: name to (variable, value).

    Args:
        environ: the environment.
        known: known names of properties, including those in the file.
    """
    names = tuple(known)
    return {
        property_name(variable, names): (variable, value)
        for variable, value in sorted(environ.items())
        if variable.startswith(PREFIX)
        and not _NOT_PROPERTIES.fullmatch(variable)
        and not _is_service_variable(variable, value)
    }


def _is_service_variable(variable: str, value: str) -> bool:
    # ROWTIDE_DATABASE_PORT may be a property, or the URL of a service named "rowtide-database".
    if variable.endswith("_PORT") and _SERVICE_URL.fullmatch(value):
        return True
    return _OF_A_SERVICE.fullmatch(variable) is not None
