"""rowtide: change data capture for MySQL and MariaDB, compatible with Debezium."""

__version__ = "0.1.0"
__all__ = ["__version__"]
