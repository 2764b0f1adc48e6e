"""The conversion of columns from Connect schemas to Spark types."""
