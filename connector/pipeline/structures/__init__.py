"""The structures with which rows are decoded: looked up, compared with TABLE_MAPs, and repaired."""
