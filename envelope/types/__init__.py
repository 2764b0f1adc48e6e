"""The Connect schema, values, defaults and masks of each MySQL and MariaDB column type."""
