"""Checksums of every column, computed by MySQL and by Spark, and their comparison."""
