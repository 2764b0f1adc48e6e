"""The Java side of Spark: the session, Hadoop's files, and what PySpark keeps to itself."""
