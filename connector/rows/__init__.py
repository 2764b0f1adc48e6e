"""The row compilers: one generated function per table, from the bytes of rows to JSON text or Connect values.

``row_compiler`` decodes the row images of the binlog, ``text_protocol_rows`` the result sets of a snapshot. Both take
column layouts and output types; tables, topics and messages belong to the rooms above.
"""
