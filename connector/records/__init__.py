"""From row images to messages: keys, values, headers, and the batches that carry them with their source offset.

``batch``, ``offset`` and ``settings`` are the values that all rooms above share; ``codecs`` turns the rows of each
table into messages. It must not know where events come from or where messages go.
"""
