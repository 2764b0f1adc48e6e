"""The row compilers: one generated function per table, from the bytes of rows to JSON text or Connect values.

``row_compiler`` decodes the row images of the binlog, ``text_protocol_rows`` the result sets of a snapshot. Both take
column layouts and output types; tables, topics and messages belong to the packages above.

::

    row_decoder ─────────────┬─► native ──► _native (C)    where it was built
    text_protocol_decoder ───┤
                             └─► row_compiler, text_protocol_rows    everywhere, and for what compiled code refuses

``native.implementation`` decides which of them is used. ``messages`` puts the texts of rows into keys and values.
"""
