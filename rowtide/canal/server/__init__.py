"""Canal's server: clients read a destination's entries over TCP.

::

    bytes ──► Session ──► request ──► Destination ──► event store
      ◄───────── answer ◄──────────────┘

``packets`` is the form on the wire, ``session`` the server's side of one connection, ``destination`` the batches of all
clients of an instance. They do no input or output.
"""
