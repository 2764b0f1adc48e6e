"""What can go wrong between topics and tables. Each message names the table or topic and the way out."""


class TablesError(Exception):
    """Base of every expected error; its text is meant for the user."""


class SettingsError(TablesError):
    """A setting is missing or contradicts another one."""


class KafkaUnreachableError(TablesError):
    """The brokers did not answer."""


class OffsetsLostError(TablesError):
    """The topic no longer holds the records that follow the remembered offsets."""


class StateError(TablesError):
    """The remembered offsets and the table do not belong together, or cannot be read."""


class NotAnEnvelopeError(TablesError):
    """The records of a topic are not change events of a table."""


class TypeConflictError(TablesError):
    """A column changed to a type that the table's column cannot take over without loss."""

    def __init__(self, table: str, column: str, old: str, new: str) -> None:
        super().__init__(
            f"table {table}, column {column}: the records now bring {new}, the table has {old}, and no type holds both "
            f"without loss. Convert the column in the table yourself, or remove the table together with its remembered "
            f"offsets (rowtide tables --restart {table}) to build it again from the topic"
        )
        self.table, self.column, self.old, self.new = table, column, old, new
