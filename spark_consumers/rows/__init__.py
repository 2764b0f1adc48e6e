"""The rows of a batch: typed changes, the last change of each key, and the columns of the table."""
