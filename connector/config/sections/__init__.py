"""From properties to the tree of values in ``config.model``: a module for each section; all problems are collected."""
