"""Topics as Spark reads them: ranges of offsets, records, and which table a topic belongs to."""
