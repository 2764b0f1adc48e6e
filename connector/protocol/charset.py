"""Text in the character sets of MySQL and MariaDB."""


def decode_statement(statement: bytes, collation: int | None) -> str:
    """The text of a statement that came in character_set_client."""
    return statement.decode("utf-8", "replace")
