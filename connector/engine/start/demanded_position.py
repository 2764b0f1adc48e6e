"""Decides where a start resumes if a signal of type ``set-binlog-position`` has set another position."""

from typing import NamedTuple

from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue.topics import IGNORE_POSITION
from rowtide.connector.errors import OffsetError
from rowtide.connector.records.offset import SourceOffset, describe
from rowtide.connector.signals.binlog_position import demanded_by, start_of, without_demand
from rowtide.connector.source.mirror.streams import check_with_mirror
from rowtide.connector.source.position.check import check_event, check_position
from rowtide.connector.source.position.rules import PositionCheck
from rowtide.connector.source.session import Session


class WrongDemand(OffsetError):
    """The server cannot stream from the position that a signal has set."""


class ResumeStart(NamedTuple):
    """The resume position of a start.

    Attributes:
        offset: the position.
        note: the reason why it differs, or would have differed, from the stored one; empty without a position from a
            signal.
    """

    offset: SourceOffset
    note: str = ""


def resume_position(config: Configuration, stored: SourceOffset) -> ResumeStart:
    """Return the position at which a start resumes: the stored one, unless a signal has set another one.

    Args:
        config: the configuration.
        stored: the stored position.

    Raises:
        WrongDemand: the server cannot stream from the position of the signal.
        DatabaseUnreachableError: the server cannot be reached.
        pymysql.MySQLError: a privilege is missing.
    """
    try:
        demanded = start_of(stored)
    except ValueError as error:
        raise WrongDemand(
            f"the position of signal {demanded_by(stored)!r} is damaged: {error}. {_way_out(stored)}"
        ) from None
    if demanded is stored:
        return ResumeStart(stored)
    signal = f"signal {demanded_by(stored)!r} (set-binlog-position) has set the position {_place(demanded)}"
    if config.signals.ignore_position:
        return ResumeStart(without_demand(stored), f"{signal}, which {IGNORE_POSITION.name}=true ignores")
    if config.streaming.check_position and not (found := _check(config, demanded)).available:
        raise WrongDemand(f"{signal}, from which this server cannot stream: {found.reason}. {_way_out(stored)}")
    return ResumeStart(demanded, f"{signal}: the start resumes there, not at the stored position {describe(stored)}")


def _place(demanded: SourceOffset) -> str:
    """Return the position of a signal, in words. A position by GTIDs has no file, because the server finds it."""
    return describe(demanded) if demanded.gtids is None else f"GTIDs {demanded.gtids}"


def _way_out(stored: SourceOffset) -> str:
    return f"To resume at the stored position {describe(stored)} instead, start once with {IGNORE_POSITION.name}=true"


def _check(config: Configuration, demanded: SourceOffset) -> PositionCheck:
    with Session(config.database, mariadb=config.mariadb) as session:
        found = check_position(session.client, demanded, config.capture.gtid_sources, mariadb=session.mariadb)
        if found.available and not demanded.gtids:
            found = check_event(session.client, demanded)
    return check_with_mirror(config, found, demanded)
