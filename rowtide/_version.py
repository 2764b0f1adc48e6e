"""The version of rowtide: a module without imports, so that every package may read it."""

__version__ = "0.1.0"
