"""An option type for numbers with fractions."""

import math

import click

__all__ = ["FiniteRange"]


class FiniteRange(click.FloatRange):
    """A number in a range that is neither ``nan``, which is in every range, nor infinite."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
