"""Builds the configuration tree of ``config.model`` from properties, one module per section; collects all problems."""
