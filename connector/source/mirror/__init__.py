"""A mirror: the binlog files of a server, byte for byte, in a folder of another machine.

::

    server ──► BinlogStream ──► BinlogCopy ──► MirrorFolder ──► MirrorStream ──► pipeline
                 [edge]         which bytes       [edge]       as from a server
"""
