"""The worker of a databus server: the connector's, with the messages of databus."""

from rowtide.connector.config import Configuration
from rowtide.connector.errors import SignalError
from rowtide.connector.pipeline.signals.signal import Signal
from rowtide.connector.worker import faust_app
from rowtide.connector.worker.base_app import App
from rowtide.databus.server.record_form import DatabusForm
from rowtide.databus.server.settings import checked_topic


def create_app(
    config: Configuration, *, web_bind: str | None = None, web_port: int | None = None, web_token: str | None = None
) -> App:
    """Create the app that publishes a connector's changes in databus' form.

    Args:
        config: the configuration.
        web_bind: as for :func:`~rowtide.connector.worker.faust_app.create_app`.
        web_port: likewise.
        web_token: likewise.

    Raises:
        ConfigurationError: ``databus.topic`` is missing, or a property has no counterpart in the messages.
    """
    form = DatabusForm(checked_topic(config))
    app = faust_app.create_app(config, web_bind=web_bind, web_port=web_port, web_token=web_token, form=form)
    app.connectors.services[config.name].on_signal("execute-snapshot", _refuse)
    return app


def _refuse(_signal: Signal) -> None:
    raise SignalError("the topic has no rows of snapshots; read them from a dump")
