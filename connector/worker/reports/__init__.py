"""What a worker shows while it runs: a live table on a terminal, or a summary in the log at a fixed interval."""
