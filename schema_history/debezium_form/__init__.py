"""Debezium's description of tables, derived from the text of statements; the schemas of records depend on it.

The rules are those of Debezium's parser listeners (``ColumnDefinitionParserListener``, ``AlterTableParserListener`` and
others of the MySQL connector 3.6 and the MariaDB connector 3.5), including their peculiarities.
"""
