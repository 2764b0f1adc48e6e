"""From a column's type to its Connect schema and the form of its values, defaults and masks included."""
