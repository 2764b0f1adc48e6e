"""The language of conditions: what it computes, what it refuses, and that nothing in it leads out of a record."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.envelope.schema import BYTES, DECIMAL, FLOAT64, INT16, INT32, OPTIONAL_STRING, STRING, Schema, struct
from rowtide.envelope.transforms import ConnectRecord, Header, TransformError
from rowtide.envelope.transforms.expressions import ExpressionError, compile_expression

ROW = struct(
    "s.d.t.Value",
    {
        "id": INT32,
        "name": OPTIONAL_STRING,
        "status": Schema("string", optional=True, default="new"),
        "price": Schema("bytes", name=DECIMAL, parameters=(("scale", "2"),)),
        "rate": FLOAT64,
        "active": INT16,
        "raw": BYTES,
        "tags": Schema("array", items=STRING),
        "more": Schema("map", keys=STRING, items=INT32),
        "odd-name": INT32,
        "__class__": INT32,
    },
    optional=True,
)
SCHEMA = struct("s.d.t.Envelope", {"before": ROW, "after": ROW, "op": STRING}, version=2)
KEY = struct("s.d.t.Key", {"id": INT32})
AFTER = {
    "id": 2, "name": None, "status": None, "price": 320, "rate": 0.5, "active": 1, "raw": b"ab", "tags": ["a", "b"],
    "more": {"x": 1}, "odd-name": 7, "__class__": 9,
}  # fmt: skip
RECORD = ConnectRecord(
    "s.d.t",
    None,
    KEY,
    {"id": 2},
    SCHEMA,
    {"before": None, "after": AFTER, "op": "c"},
    (Header("h", INT32, 1), Header("h", INT32, 2), Header("nothing", None, None)),
)


def condition(text: str, **options: bool) -> Any:
    return compile_expression(text, boolean=True, **options)(RECORD)


def topic(text: str) -> Any:
    return compile_expression(text, boolean=False)(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "value.op == 'c' and value.after.id == 2",
        "value.op != 'd' or value.before.id != 2",
        "not value.op == 'd'",
        "value.before is None and value.after is not None",
        "value['after']['odd-name'] == 7",
        "value.after.__class__ == 9",
        "value.after.price == 3.2 and value.after.price >= 3.20 and 3.2 == value.after.price and value.after.price > 3",
        "value.after.price * 2 - 0.4 == 6",
        "value.after.price / 2 == 1.6 and value.after.rate + value.after.price == 3.7",
        "1 < value.after.id <= 2",
        "value.after.id % 2 == 0 and -value.after.id == -2",
        "value.after.id in (1, 2) and value.after.id not in [3]",
        "(value.after or value.before).id == 2",
        "value.after.active and value.after.id == 2",
        "value.after.name is None and value.after.name == None and value.after.name != 'x'",
        "get(value.before, 'id') is None and get(value, 'before', 'id') is None and get(value, 'after', 'id') == 2",
        "value.after.raw == b'ab' and len(value.after.raw) == 2",
        "'a' in value.after.tags and len(value.after.tags) == 2",
        "value.after.more['x'] == 1 and 'y' not in value.after.more and value.after.more['y'] is None",
        "value.after == value.after and not value.after == key",
        "key.id == 2 and topic == 's.d.t' and topic.startswith('s.') and topic[2:] == 'd.t' and topic[:-2] == 's.d'",
        "header.h.value == 2 and header.h.schema.type == 'int32' and header['nothing'].value is None",
        "header.x is None and 'x' not in header and 'h' in header and get(header.x, 'value') is None",
        "'id' in value.after and 'id' in keySchema and 'nope' not in value.after",
        "valueSchema.name == 's.d.t.Envelope' and valueSchema.version == 2 and keySchema.optional == False",
        "'fields' not in valueSchema and len(valueSchema.fields) == 3",
        r"fullmatch(r's[.]\w[.].*', topic) and search('d', topic) and not fullmatch('d', topic)",
        "not search('x', value.after.name)",
        "topic.upper().lower().strip().replace('.', '-') == 's-d-t' and topic.endswith('t')",
        "f'{topic}-{value.after.price}-{key.id}' == 's.d.t-3.20-2' and str(1) + 'a' == '1a'",
        "int('12') == 12 and int(value.after.price) == 3",
        "True if value.op == 'c' else False",
        "value.op == 'c'\n",
    ],
)
def test_a_condition_that_holds(text: str) -> None:
    assert condition(text) is True


def test_a_default_takes_the_place_of_null_unless_values_are_exact() -> None:
    assert condition("value.after.status == 'new'")
    assert condition("value.after.status is None", exact=True)


def test_a_topic_is_a_text_or_null() -> None:
    assert topic("'ones' if value.after.id == 2 else None") == "ones"
    assert topic("'ones' if value.after.id == 1 else None") is None
    assert topic("topic + '.x'") == "s.d.t.x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value.before.id == 2", r"value\.before\.id: value\.before is null\. Write get\(value\.before, 'id'\)"),
        (
            "value.after.nope == 2",
            r"value\.after\.nope: s\.d\.t\.Value has no field 'nope'; its fields are id, name, st",
        ),
        ("get(value.after, 'nope') == 2", r"get\(value\.after, 'nope'\): s\.d\.t\.Value has no field 'nope'"),
        ("header.x.value == 2", r"header\.x\.value: header\.x is null"),
        ("header.h.name == 2", r"header\.h\.name: a header has no 'name'; it has value, schema"),
        ("value.after.id.x == 2", r"value\.after\.id\.x: a number has no field 'x'"),
        (
            "value.op.lower == 'c'",
            r"a string has no field 'lower' \(value\.op\.lower\(\) with parentheses is",
        ),
        ("value.after.id == '2'", "value.after.id is a number, and '2' is a string: they cannot be compared this way"),
        ("value.after.id in ('1', '2')", "is a number, and .* is a tuple: they cannot be compared this way"),
        ("value.after.name > 'a'", "value.after.name is null, and 'a' is a string: they cannot be compared this way"),
        ("value.after > value.before", "value.after is a struct, and value.before is null"),
        ("value.after.active", r"value\.after\.active gave a number, not true or false: .* value\.after\.active == 1"),
        ("value.after", "gave a struct, not true or false"),
        ("value.after.name", "gave null, not true or false"),
        ("value.after.name + 'x' == ''", "value.after.name \\+ 'x': not possible with null and a string"),
        ("value.op * 3 == ''", r"value\.op \* 3: not possible with a string and a number"),
        ("value.op % 3 == ''", "not possible with a string and a number"),
        ("value.after.id / 0 == 1", r"value\.after\.id / 0: ZeroDivisionError"),
        ("value.after.price / 0 == 1", "DivisionByZero"),
        ("f'{value.after.name}' == ''", r"value\.after\.name: not possible with null"),
        ("value.after.id.lower() == ''", r"value\.after\.id\.lower\(\): not possible with a number"),
        ("int(topic) == 1", r"int\(topic\): not possible with a string"),
        ("topic['a'[0:1]:] == ''", "not possible with a string"),
        ("value.after.tags[0:] == 1", "not possible with an array"),
        ("topic.replace('', 'x') == ''", "not possible with"),
        ("1e999 - 1e999 < value.after.price", "is a number, and value.after.price is a number"),
        ("int('1' + f'{topic}' + '0') == 1", "not possible with a string"),
        ("len(value.after) == 1", "not possible with a struct"),
    ],
)
def test_a_record_for_which_an_expression_has_no_value(text: str, message: str) -> None:
    evaluate = compile_expression(text, boolean=True)
    with pytest.raises(TransformError, match=message):
        evaluate(RECORD)


def test_an_error_does_not_show_values_of_rows() -> None:
    secret = RECORD.with_content("value", SCHEMA, {"before": None, "after": {**AFTER, "name": "secret"}, "op": "c"})
    for text in ("int(value.after.name) == 1", "value.after.name == 1", "value.after.name", "value.after.name.x == 1"):
        with pytest.raises(TransformError) as caught:
            compile_expression(text, boolean=True)(secret)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value.op = 'u'", "is not an expression in Python's syntax"),
        ("(", "was never closed"),
        ("", "is not an expression"),
        (r"search('\d', topic)", "invalid escape sequence"),
        ("op == 'u'", "there is no variable op: .* value.after.op"),
        ("'c'", "'c' gives a string, but the result must be true or false"),
        ("value.op == 'c' or 'u'", "'u' gives a string, but the result must be true or false"),
        ("1 if topic == 'a' else True", "1 gives a number"),
        ("len(topic)", "gives a number"),
        ("topic.lower()", "gives a string"),
        ("None", "None gives null"),
        ("topic.name == 'x'", "topic has no name; it is a string"),
        ("valueSchema.nope == 1", "valueSchema has no nope; it has name, version, type, optional, fields"),
        ("topic is 'x'", "write == or != instead of is"),
        ("topic == 'x' if value", "expected 'else'"),
        ("fullmatch(topic, 'a')", "the first argument is the pattern"),
        ("fullmatch('(', topic)", r"fullmatch\('\(', topic\): "),
        ("get(value)", "get takes at least 2 arguments, not 1"),
        ("get(value, topic) == 1", "the names of fields must be strings"),
        ("len() == 1", "len takes 1 arguments, not 0"),
        ("topic.lower(1) == 1", "lower takes 0 arguments, not 1"),
        ("topic.format(1) == ''", r"there is no topic\.format; the functions are get"),
        ("f'{topic!r}' == ''", "an f-string has no formats here"),
        ("f'{topic:>1000000000}' == ''", "an f-string has no formats here"),
        ("'x' * " * 3000 + "'x' == ''", "has 18009 characters"),
        ("not " * 100 + "True", "nested more than 60 times"),
        ("(" * 4000 + "1" + ")" * 4000, "too many nested parentheses|too deeply|Parser stack|maximum recursion"),
        ("1" * 5000 + " == 1", "is not an expression"),
        ("\0", "is not an expression"),
    ],
)
def test_an_expression_that_is_refused(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        compile_expression(text, boolean=True)


ESCAPES = [
    "().__class__.__base__.__subclasses__()",
    "().__class__ == 1",
    "[].__class__.__mro__[1].__subclasses__()[0]",
    "__import__('os').system('true')",
    "eval('1')",
    "exec('1')",
    "open('/etc/passwd').read()",
    "getattr(value, '__class__')",
    "globals()",
    "vars()",
    "type(value)",
    "value.__init__.__globals__",
    "value.after.__dict__",
    "topic.__class__",
    "topic.__len__()",
    "'{0.__class__}'.format(value)",
    "'%s' % value",
    "topic.join(['a'])",
    "topic.encode().hex()",
    "f'{value.__class__}'",
    "(lambda: 1)()",
    "(lambda: (yield))()",
    "[x for x in value]",
    "{x: 1 for x in 'a'}",
    "(x for x in 'a')",
    "(x := 1)",
    "value if (y := value) else 1",
    "len.__self__",
    "get.__globals__['os']",
    "fullmatch.__code__",
    "get(value, '__class__')",
    "get(topic, '__class__')",
    "header.h.__class__",
    "header.h.schema.__class__",
    "value._values",
    "value.field('op')",
    "valueSchema.__class__",
    "valueSchema.fields.__class__",
    "keySchema._found",
    "10 ** 10 ** 10",
    "1 << 10 ** 9",
    "'a' * 10**9",
    "'a' * 1000000000",
    "[0] * 1000000000",
    "(1,) * 1000000000",
    "b'a' * 1000000000",
    "'%1000000000d' % 1",
    "f'{1:1000000000}'",
    "~1",
    "1 // 0",
    "value @ value",
    "await value",
    "yield",
    "*value",
    "len(*value)",
    "len(value=1)",
    "print(1)",
    "breakpoint()",
    "...",
    "1j",
    "{1}",
    "{'a': 1}",
    "value[0]",
    "value[topic]",
    "value['__class__']",
    "topic[::2]",
    "topic['x']",
    "import os",
    "os",
    "__builtins__",
    "None.__class__",
    "True.real",
    "(1).real",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_nothing_leads_out_of_a_record(text: str) -> None:
    with pytest.raises((ExpressionError, TransformError)):
        compile_expression(f"({text}) == 1", boolean=True)(RECORD)


def test_a_header_has_any_name() -> None:
    assert condition("header.__class__ is None and header._found is None")


def test_texts_do_not_grow_beyond_proportion() -> None:
    text = "topic" + ".replace('s', 'ssssssssssssssssssssssssssssssss')" * 10 + " == ''"
    with pytest.raises(TransformError, match="not possible with a string"):
        condition(text)


def test_a_long_text_is_not_a_number() -> None:
    long = RECORD.with_content("value", SCHEMA, {"before": None, "after": {**AFTER, "name": "9" * 101}, "op": "c"})
    evaluate = compile_expression("int(value.after.name) == 1", boolean=True)
    with pytest.raises(TransformError, match="not possible with a string"):
        evaluate(long)


def test_a_pattern_matches_in_linear_time() -> None:
    assert condition("not fullmatch('(a+)+b', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')")


ATOMS = st.sampled_from(
    [
        "value",
        "key",
        "header",
        "topic",
        "valueSchema",
        "value.op",
        "value.before",
        "value.after.id",
        "value.after.price",
        "value.after.name",
        "value.after.tags",
        "value.after.raw",
        "header.h",
        "1",
        "2.5",
        "'a'",
        "b'a'",
        "None",
        "True",
        "x",
        "value.__class__",
        "()",
        "(1,'a')",
        "10**10",
    ]
)


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = ["==", "<", "in", "not in", "is", "and", "or", "+", "-", "*", "/", "%", "**", "<<", "//"]
    calls = ["len", "str", "int", "get", "fullmatch", "search", "type", "eval", "topic.lower", "value.op.replace"]
    return st.one_of(
        st.tuples(parts, st.sampled_from(operators), parts).map(lambda found: f"({found[0]} {found[1]} {found[2]})"),
        st.tuples(st.sampled_from(calls), st.lists(parts, max_size=3)).map(
            lambda one: f"{one[0]}({', '.join(one[1])})"
        ),
        st.tuples(parts, parts, parts).map(lambda found: f"({found[0]} if {found[1]} else {found[2]})"),
        st.tuples(parts, st.sampled_from(["x", "op", "__class__", "value", "lower"])).map(
            lambda one: f"{one[0]}.{one[1]}"
        ),
        st.tuples(parts, parts).map(lambda found: f"{found[0]}[{found[1]}]"),
        st.tuples(parts, parts).map(lambda found: f"{found[0]}[{found[1]}:]"),
        parts.map(lambda one: f"(not {one})"),
        parts.map(lambda one: f'f"{{{one}}}"' if '"' not in one and "\\" not in one else one),
    )


@given(st.recursive(ATOMS, combined, max_leaves=12), st.booleans())
def test_any_expression_gives_a_value_or_one_of_two_errors(text: str, boolean: bool) -> None:
    try:
        found = compile_expression(text, boolean=boolean)(RECORD)
    except (ExpressionError, TransformError):
        return
    assert type(found) is bool if boolean else found is None or type(found) is str


@given(st.text(max_size=60))
def test_any_text_is_refused_or_gives_a_value(text: str) -> None:
    try:
        compile_expression(text, boolean=False)(RECORD)
    except (ExpressionError, TransformError):
        return
