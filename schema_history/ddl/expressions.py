"""Prints expressions like MySQL: every operation in parentheses, and functions with their canonical names.

MySQL shows this text for functional key parts, generated columns and defaults in its information_schema. An expression
that this module does not support keeps its text, because the text has no effect on the structure of a table.
"""

from rowtide.schema_history.ddl.cursor import Cursor
from rowtide.schema_history.ddl.functions import Node, bare_function, function
from rowtide.schema_history.ddl.lexer import BITS, HEX, NATIONAL, NUMBER, QUOTED, STRING, WORD, Dialect
from rowtide.schema_history.errors import UnparsedStatement
from rowtide.schema_history.server.charsets import charset_name

_PIPES_AS_CONCAT = 2
_HIGH_NOT_PRECEDENCE = 1 << 29
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARISONS = {"=": "=", "<=>": "<=>", "<>": "<>", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
_BINARY = {
    "|": (1, "|"),
    "&": (2, "&"),
    "<<": (3, "<<"),
    ">>": (3, ">>"),
    "+": (4, "+"),
    "-": (4, "-"),
    "*": (5, "*"),
    "/": (5, "/"),
    "%": (5, "%"),
    "MOD": (5, "%"),
    "DIV": (5, "DIV"),
    "^": (6, "^"),
}


def canonical(text: str, dialect: Dialect, charset: str = "utf8mb4") -> str:
    """Return the expression in MySQL's form, or unchanged if it is not supported.

    Args:
        text: the expression as written, without parentheses around it.
        dialect: its dialect.
        charset: the character set of its strings.
    """
    try:
        printer = _Printer(Cursor(text, dialect), charset)
        node = printer.expression()
        return node.text if printer.c.at_end() else text
    except (UnparsedStatement, LookupError, ValueError, RecursionError):
        return text


class _Printer:
    def __init__(self, cursor: Cursor, charset: str) -> None:
        self.c = cursor
        self.charset = charset
        self.high_not = bool(cursor.dialect.sql_mode & _HIGH_NOT_PRECEDENCE)
        self.concat = bool(cursor.dialect.sql_mode & _PIPES_AS_CONCAT)

    # ------------------------------------------------------------ truth values

    def expression(self) -> Node:
        """Parse an expression, from the lowest precedence on."""
        nodes = [self._xor()]
        while self.c.accept_one("OR", "||"):  # with PIPES_AS_CONCAT, || is an operator of values
            nodes.append(self._xor())
        return _joined(nodes, "or")

    def _xor(self) -> Node:
        node = self._and()
        while self.c.accept("XOR"):
            right = self._and()
            negated = f"({_not(node)} xor {_truth(right)})"
            node = Node(f"({_truth(node)} xor {_truth(right)})", True, negated)
        return node

    def _and(self) -> Node:
        nodes = [self._not()]
        while self.c.accept_one("AND", "&&"):
            nodes.append(self._not())
        return _joined(nodes, "and")

    def _not(self) -> Node:
        if not self.high_not and self.c.accept("NOT"):
            node = self._not()
            return Node(_not(node), True, _truth(node))
        return self._predicate()

    def _predicate(self) -> Node:
        node = self.operand()
        while True:
            if self.c.word in _COMPARISONS:
                operator = _COMPARISONS[self.c.advance().word]
                node = _compared(node.text, operator, self.operand().text)
            elif self.c.accept("IS"):
                node = self._is(node)
            else:
                negative = self.c.word == "NOT" and self.c.ahead() in ("LIKE", "IN", "BETWEEN", "REGEXP", "RLIKE")
                if negative:
                    self.c.at += 1
                found = self._other_predicate(node, negative)
                if found is None:
                    return node
                node = found

    def _is(self, node: Node) -> Node:
        negative = self.c.accept("NOT")
        word = self.c.accept_one("NULL", "TRUE", "FALSE", "UNKNOWN") or self.c.fail("NULL, TRUE or FALSE")
        name = "null" if word in ("NULL", "UNKNOWN") else word.lower()
        left = node.text if name == "null" else _truth(node)
        plain, denied = f"({left} is {name})", f"({left} is not {name})"
        return Node(denied, True, plain) if negative else Node(plain, True, denied)

    def _other_predicate(self, node: Node, negative: bool) -> Node | None:
        left = node.text
        if self.c.accept("LIKE"):
            text = f"({left} like {self.operand().text}"
            if self.c.accept("ESCAPE"):
                text += f" escape {self.operand().text}"
            text += ")"
            return Node(f"(not({text}))", True, text) if negative else Node(text, True, f"(not({text}))")
        if self.c.accept_one("REGEXP", "RLIKE"):
            text = f"regexp_like({left},{self.operand().text})"
            return Node(f"(not({text}))", True, text) if negative else Node(text, True, f"(not({text}))")
        if self.c.accept("BETWEEN"):
            low = self.operand().text
            self.c.expect("AND")
            high = self.operand().text
            plain, denied = f"({left} between {low} and {high})", f"({left} not between {low} and {high})"
            return Node(denied, True, plain) if negative else Node(plain, True, denied)
        if self.c.accept("IN"):
            values = self.arguments()
            if len(values) == 1:
                return _compared(left, "<>" if negative else "=", values[0])
            joined = ",".join(values)
            plain, denied = f"({left} in ({joined}))", f"({left} not in ({joined}))"
            return Node(denied, True, plain) if negative else Node(plain, True, denied)
        if self.c.accept("MEMBER"):
            self.c.accept("OF")
            return Node(f"{left} member of ({self.arguments()[0]})")
        return None

    # ------------------------------------------------------------ values

    def operand(self) -> Node:
        """Parse a value: one side of a comparison."""
        return self._bits(0)

    def _bits(self, level: int) -> Node:
        left = self._concatenated()
        while True:
            binary = _BINARY.get(self.c.word)
            if binary is None or binary[0] <= level:
                return left
            operator = self.c.advance().word
            if operator in ("+", "-") and self.c.word == "INTERVAL":
                left = Node(f"({left.text} {operator} {self.interval()})")
                continue
            right = self._bits(binary[0])
            left = Node(f"({left.text} {binary[1]} {right.text})")

    def _concatenated(self) -> Node:
        left = self._unary()
        while self.concat and self.c.accept("||"):
            left = Node(f"concat({left.text},{self._unary().text})")
        return left

    def interval(self) -> str:
        """Parse INTERVAL with its value and unit."""
        self.c.expect("INTERVAL")
        value = self.expression().text
        return f"interval {value} {self.c.name('a unit').lower()}"

    def _unary(self) -> Node:
        sign = self.c.accept_one("-", "+", "~", "!")
        if sign == "+":
            return self._unary()
        if sign == "!" or (self.high_not and self.c.accept("NOT")):
            node = self._unary()
            return Node(_not(node), True, _truth(node))
        if sign:
            return Node(f"{sign}({self._unary().text})")
        if self.c.accept("BINARY"):
            return Node(f"cast({self._unary().text} as char charset binary)")
        if self.c.word == "INTERVAL" and self.c.ahead() != "(":
            interval = self.interval()
            self.c.expect("+")
            return Node(f"({self._bits(4).text} + {interval})")
        node = self._primary()
        while True:
            if self.c.accept("COLLATE"):
                node = Node(f"({node.text} collate {self.c.name_or_string().lower()})")
            elif self.c.accept("->>"):
                node = Node(f"json_unquote(json_extract({node.text},{self.string()}))")
            elif self.c.accept("->"):
                node = Node(f"json_extract({node.text},{self.string()})")
            else:
                return node

    def string(self, introducer: str | None = None) -> str:
        """Parse a string; its character set is ``charset`` without an introducer."""
        value = self.c.string().replace("\\", "\\\\").replace("\n", "\\n").replace("'", "\\'")
        return f"_{introducer or self.charset}'{value}'"

    def _primary(self) -> Node:
        token = self.c.token
        if self.c.word == "(":
            self.c.at += 1
            node = self.expression()
            self.c.expect(")")
            return node
        if token.kind in (STRING, NATIONAL):
            return Node(self.string("utf8mb3" if token.kind is NATIONAL else None))
        if token.kind is NUMBER:
            self.c.at += 1
            return Node(_number(token.value))
        if token.kind in (HEX, BITS):
            self.c.at += 1
            return Node(_hexadecimal(token.value, token.kind is BITS))
        if token.kind is QUOTED:
            return self._column()
        if token.kind is WORD:
            return self._word()
        return self.c.fail("an expression")

    def _column(self) -> Node:
        return Node(f"`{self.c.column_name().replace('`', '``')}`")

    def _word(self) -> Node:
        word, following = self.c.word, self.c.tokens[self.c.at + 1]
        if word in ("NULL", "TRUE", "FALSE"):
            self.c.at += 1
            return Node("NULL") if word == "NULL" else Node(word.lower(), True, f"(0 = {word.lower()})")
        if word in ("DATE", "TIME", "TIMESTAMP") and following.kind is STRING:
            self.c.at += 1
            return Node(f"{word}'{self.c.string()}'")
        if word.startswith("_") and following.kind in (STRING, HEX, BITS):
            self.c.at += 1
            return self._primary() if following.kind is not STRING else Node(self.string(charset_name(word[1:])))
        if word == "CASE":
            return self._case()
        if following.word == "(":
            return function(self, word.lower())
        name = bare_function(word.lower())
        if name is None:
            return self._column()
        self.c.at += 1
        return Node(f"{name}()")

    def _case(self) -> Node:
        self.c.expect("CASE")
        text = "(case"
        if self.c.word != "WHEN":
            text += f" {self.expression().text}"
        while self.c.accept("WHEN"):
            text += f" when {self.expression().text}"
            self.c.expect("THEN")
            text += f" then {self.expression().text}"
        if self.c.accept("ELSE"):
            text += f" else {self.expression().text}"
        self.c.expect("END")
        return Node(text + " end)")

    def arguments(self) -> list[str]:
        """Parse a list of expressions in parentheses."""
        self.c.expect("(")
        values: list[str] = []
        while not self.c.accept(")"):
            values.append(self.expression().text)
            if not self.c.accept(",") and self.c.word != ")":
                self.c.fail(", or )")
        return values


def _joined(nodes: list[Node], operator: str) -> Node:
    """Join nodes by AND or OR; operands that are joined by the same operator are flattened."""
    if len(nodes) == 1:
        return nodes[0]
    parts: list[str] = []
    negated: list[str] = []
    for node in nodes:
        if node.operator == operator:
            parts.extend(node.parts)
            negated.append(node.negated[1:-1])
        else:
            parts.append(_truth(node))
            negated.append(_not(node))
    other = "or" if operator == "and" else "and"
    return Node(f"({f' {operator} '.join(parts)})", True, f"({f' {other} '.join(negated)})", operator, tuple(parts))


def _truth(node: Node) -> str:
    return node.text if node.truth else f"(0 <> {node.text})"


def _not(node: Node) -> str:
    return node.negated or f"(0 = {node.text})"


def _compared(left: str, operator: str, right: str) -> Node:
    text = f"({left} {operator} {right})"
    opposite = _NEGATED.get(operator)
    return Node(text, True, f"({left} {opposite} {right})" if opposite else f"(not({text}))")


def _number(text: str) -> str:
    if text.startswith("."):
        return "0" + text
    return text.lstrip("0") or "0" if text.isdigit() else text


def _hexadecimal(digits: str, bits: bool) -> str:
    if bits:
        size = max(1, (len(digits) + 7) // 8)
        return f"0x{int(digits or '0', 2):0{2 * size}X}"
    return "0x" + digits.upper().rjust(len(digits) + len(digits) % 2, "0")
