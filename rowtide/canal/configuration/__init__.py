"""Canal's configuration: ``canal.properties``, and ``NAME/instance.properties`` of each destination.

``load`` reads a folder of them, ``reader`` one file; ``properties`` has the names, ``model`` the settings.
"""
