"""Reading statements: the lexer, the parser, and the values that it makes of them. Knows no tables."""
