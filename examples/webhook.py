"""Post Debezium's records to a URL, with retries."""

import os

import rowtide

engine = rowtide.Engine.from_config("library.properties")
sink = rowtide.HttpSink(os.environ["WEBHOOK"], headers={"Authorization": "Bearer secret"})
engine.run(sink)
