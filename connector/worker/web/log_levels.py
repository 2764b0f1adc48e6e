"""Log levels under Kafka Connect's names."""

import logging

audit = logging.getLogger("rowtide.audit")
"""The log of changes and who made them; no request sets its level."""

_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NAMES = {
    logging.DEBUG: "DEBUG",
    logging.INFO: "INFO",
    logging.WARNING: "WARN",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "FATAL",
}


def loggers() -> dict[str, str]:
    """Return the levels of all loggers that have their own."""
    found = {"root": logging.getLogger()}
    known = logging.root.manager.loggerDict.copy()
    found |= {name: logger for name, logger in sorted(known.items()) if isinstance(logger, logging.Logger)}
    return {name: _NAMES.get(logger.level, str(logger.level)) for name, logger in found.items() if logger.level}


def level_of(name: str) -> str | None:
    """Return the effective level of a logger; ``None`` if there is no such logger."""
    if name != "root" and name not in logging.root.manager.loggerDict:
        return None
    level = logging.getLogger("" if name == "root" else name).getEffectiveLevel()
    return _NAMES.get(level, str(level))


def is_level(level: str) -> bool:
    """Return whether there is a level of this name."""
    return level.upper() in _LEVELS


def set_level(name: str, level: str) -> bool:
    """Set the level of a logger and of its descendants without their own level, and return whether the level exists."""
    number = _LEVELS.get(level.upper())
    if number is None:
        return False
    audit.setLevel(audit.getEffectiveLevel())  # it no longer depends on the levels of the loggers above it
    logging.getLogger("" if name == "root" else name).setLevel(number)
    return True
