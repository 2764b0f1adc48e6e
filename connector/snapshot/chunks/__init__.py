"""Parts of a table: the ranges of its key, which a snapshot reads one by one or in parallel."""
