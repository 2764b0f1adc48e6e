"""The Java side of Spark: the session, the driver's classes and Hadoop's file systems."""
