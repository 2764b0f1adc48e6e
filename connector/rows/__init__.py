"""The row compiler: one generated function for each table, from bytes to JSON text or Connect values.

``compiler`` reads images of row events, ``text_protocol_rows`` rows of a snapshot's result set. It must not know
tables, topics or messages: it is given column layouts and the forms of values.
"""
