"""Rows of a batch: typed changes, the last state of each key, and the columns that the table needs for them."""
