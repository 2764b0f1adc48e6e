"""The reports of a running worker: a live table on a terminal, or a summary in the log at a fixed interval."""
