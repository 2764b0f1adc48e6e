"""The base class of the errors of all packages, which imports none of them."""


class ConnectorError(Exception):
    """The base class of all errors that a connector raises."""

    def __reduce__(self) -> tuple[object, ...]:
        """Make every error picklable, whatever its constructor takes: other processes get its text and attributes."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[ConnectorError], args: tuple[object, ...], state: dict[str, object]) -> ConnectorError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error
