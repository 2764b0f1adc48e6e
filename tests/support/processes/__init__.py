"""Processes of rowtide, and how they are started, watched and interrupted."""
