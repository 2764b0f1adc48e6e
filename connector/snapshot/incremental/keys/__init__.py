"""The keys of rows, by which the rows of a chunk are compared with the row events that the stream has emitted."""
