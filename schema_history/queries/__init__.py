"""Questions about structures: what a table was at a position, what changed it, what a statement would do."""
