"""The base class of all errors, and the text about a missing package."""


class ConnectorError(Exception):
    """The base class of all errors that a connector raises."""

    def __reduce__(self) -> tuple[object, ...]:
        """Make every error picklable, whatever its constructor takes: other processes get its text and attributes."""
        return _restored, (type(self), self.args, self.__dict__)


def needs_package(missing: ModuleNotFoundError, extra: str) -> str:
    """Return the part of an error that names a package which is not installed, and the extra that installs it."""
    return f"needs the package {missing.name}, which is not installed: pip install 'rowtide[{extra}]'"


def _restored(kind: type[ConnectorError], args: tuple[object, ...], state: dict[str, object]) -> ConnectorError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error
