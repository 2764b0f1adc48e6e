"""What Debezium makes of a statement's text: the form of tables in its history, from which schemas of records come.

The rules are those of its listeners (``ColumnDefinitionParserListener``, ``AlterTableParserListener`` and the others of
the MySQL connector 3.6 and the MariaDB connector 3.5), its oddities of form included.
"""
