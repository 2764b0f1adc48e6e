"""Binlog files on disk: the files of a folder, and the statements in them."""
