"""The options of mysqld and mariadbd: the defaults of the local stack, and functions to combine and write options."""

from collections.abc import Iterator, Mapping

__all__ = ["MARIADB_DEFAULTS", "MYSQL_DEFAULTS", "Options", "arguments", "merged", "option_file"]

Options = Mapping[str, str | int | bool | None]
"""Option names, with ``_`` or ``-``, and their values. True means an option without a value, False the option with the
prefix ``skip_``, and None removes a default."""

_DEFAULTS: Options = {
    # Needed by change data capture
    "server_id": 1,
    "log_bin": "binlog",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    # Independent of the environment
    "character_set_server": "utf8mb4",
    "default_time_zone": "+00:00",
    "skip_name_resolve": True,
    "local_infile": 1,
    "secure_file_priv": "",
    # Small, because several servers run on one machine
    "innodb_buffer_pool_size": "128M",
    "innodb_log_buffer_size": "8M",
    "max_connections": 100,
    "table_definition_cache": 400,
    "table_open_cache": 400,
    # A killed server loses nothing with these values, because the kernel has its writes; a crashed machine would.
    "innodb_flush_log_at_trx_commit": 2,
    "sync_binlog": 0,
}
MYSQL_DEFAULTS: Options = {
    **_DEFAULTS,
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "innodb_redo_log_capacity": "64M",
    "mysqlx": 0,
}
MARIADB_DEFAULTS: Options = {
    **_DEFAULTS,
    "gtid_strict_mode": 1,
    "innodb_log_file_size": "64M",
}


def merged(*layers: Options) -> dict[str, str | int | bool | None]:
    """Return the options of all layers, in which later layers override earlier ones. All names have ``_``."""
    return {name.replace("-", "_"): value for layer in layers for name, value in layer.items()}


def option_file(options: Options) -> str:
    """Return the options as the text of a ``my.cnf``."""
    return "".join(f"{line}\n" for line in ("[mysqld]", *_assignments(options)))


def arguments(options: Options) -> tuple[str, ...]:
    """Return the options as command-line arguments."""
    return tuple(f"--{assignment}" for assignment in _assignments(options))


def _assignments(options: Options) -> Iterator[str]:
    for name, value in merged(options).items():
        if value is True:
            yield name
        elif value is False:
            yield f"skip_{name}"
        elif value is not None:
            yield f"{name}={value}"
