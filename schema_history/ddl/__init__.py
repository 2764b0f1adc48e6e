"""The parser of statements: text to tokens, tokens to the values in ``statements``. It needs no tables."""
