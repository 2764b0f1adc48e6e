"""Types of options: addresses, which are checked before anything connects, and numbers with fractions."""

import math

import click

from rowtide.topics.addresses import server_problems, url_problem

__all__ = ["HOST", "SERVERS", "URL"]


class _Servers(click.ParamType):
    """Kafka brokers: ``host:port,host:port``."""

    name = "servers"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is."""
        problems = list(server_problems(value))
        if problems:
            self.fail("; ".join(problems), param, ctx)
        return value


class _Url(click.ParamType):
    """An HTTP URL, or several of one registry, separated by commas."""

    name = "url"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is."""
        for url in value.split(","):
            problem = url_problem(url.strip())
            if problem is not None:
                self.fail(problem, param, ctx)
        return value


class _Host(click.ParamType):
    """A host name or an address. An empty one, such as that of an unset variable, would mean all interfaces."""

    name = "host"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is."""
        if not value.strip():
            self.fail("is empty: name an address of this machine, or 0.0.0.0 for all interfaces", param, ctx)
        return value


HOST, SERVERS, URL = _Host(), _Servers(), _Url()


__all__ = ["FiniteRange"]


class FiniteRange(click.FloatRange):
    """A number in a range that is neither ``nan``, which is in every range, nor infinite."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
