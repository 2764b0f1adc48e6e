"""The compiled code for records, checksums and partitions, and the decision whether it is used.

The C files of this folder become the module ``_native`` of the folder above; ``native.h`` is the place to begin.
"""
