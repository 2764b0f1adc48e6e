"""Decodes text in every character set of MySQL 9.7 and MariaDB 11.4, as the servers' ``CONVERT(… USING utf8mb4)`` does.

Python's codecs are used where they agree with the servers; the tables below hold the differences, recorded from the
servers (both agree on all valid sequences). A sequence without a Unicode character becomes ``?``, as on the server.
Invalid data never raises: it becomes ``?`` or, in the Unicode character sets, U+FFFD.
"""

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from rowtide.connector.errors import UnsupportedEvent
from rowtide.schema_history.server.charsets import charset_of, collation_name
from rowtide.schema_history.server.lacking_codecs import LACKING, characters
from rowtide.schema_history.server.query_event import Flavor

BINARY = 63
"""The id of the collation ``binary``, that of byte strings."""

Decoder = Callable[[bytes], str]


def decoder(collation: int) -> Decoder:
    """Return the function that decodes bytes in a collation's character set. The function never raises.

    Raises:
        UnsupportedEvent: the collation id is unknown, or the one of byte strings.
    """
    charset = charset_of_collation(collation)
    found = _decoder(charset)
    if found is None:
        raise UnsupportedEvent(f"text in collation {collation} (character set {charset}) cannot be decoded")
    return found


def charset_decoder(charset: str) -> Decoder:
    """Return the same by the name of the character set. Raises `UnsupportedEvent` if the name is unknown."""
    found = _decoder("utf8mb3" if charset == "utf8" else charset)
    if found is None:
        raise UnsupportedEvent(f"text in character set {charset!r} cannot be decoded")
    return found


@cache
def charset_of_collation(collation: int) -> str:
    """Return the character set of a collation id. The ids of MySQL and MariaDB do not contradict each other.

    Raises:
        UnsupportedEvent: the id is unknown.
    """
    name = collation_name(collation, Flavor.MYSQL) or collation_name(collation, Flavor.MARIADB)
    if name is None:
        raise UnsupportedEvent(f"unknown collation {collation}: neither MySQL 9.7 nor MariaDB 11.4 has it")
    return charset_of(name)


@cache
def ambiguous_characters(charset: str) -> frozenset[str]:
    """Return the characters that more than one byte sequence of a character set stands for.

    A server that looks for such a character looks for one of these sequences, so it may miss a row that has it. Most
    are ``?`` and U+FFFD, which stand for bytes without a character.
    """
    decode = charset_decoder(charset)
    single = [bytes([byte]) for byte in range(256)]
    high = single[128:]
    pairs = [first + second for first in high for second in single]
    triples = [b"\x8f" + first + second for first in high for second in high]  # EUC
    numbers = Counter(text for text in map(decode, [*single, *pairs, *triples]) if len(text) == 1)
    return frozenset({"\ufffd", *(text for text, number in numbers.items() if number > 1)})


def character_table(decode: Decoder) -> str | None:
    """Return the 256 characters of a single-byte character set by their bytes; ``None`` if it is not single-byte."""
    return _CHARACTER_TABLES.get(decode)


def decode_statement(statement: bytes, collation: int | None) -> str:
    """Return the text of a statement in character_set_client; UTF-8 if that is unknown or ``binary``."""
    if collation is None or collation == BINARY:
        return _utf8(statement)
    return decoder(collation)(statement)


# --- Unicode ---------------------------------------------------------------------------------------------------------

_SURROGATES = re.compile("[\ud800-\udfff]")


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _lenient(data, "utf-8")


def _lenient(data: bytes, codec: str) -> str:
    """Decode text with a lone surrogate, which MariaDB and ucs2 allow, as one U+FFFD, not one for each byte."""
    try:
        return _SURROGATES.sub("\ufffd", data.decode(codec, "surrogatepass"))
    except UnicodeDecodeError:
        return data.decode(codec, "replace")


def _unicode(codec: str) -> Decoder:
    decode = codecs.getdecoder(codec)

    def text(data: bytes) -> str:
        try:
            return decode(data)[0]
        except UnicodeDecodeError:
            return _lenient(data, codec)

    return text


_utf16 = _unicode("utf-16-be")
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")


def _ucs2(data: bytes) -> str:
    """Decode ucs2, where each character has two bytes, so a surrogate pair is two invalid characters."""
    return _BEYOND_BMP.sub("\ufffd\ufffd", _utf16(data))


# --- single-byte character sets --------------------------------------------------------------------------------------

_SINGLE: Mapping[str, tuple[str, Mapping[int, str]]] = {
    **LACKING,
    "ascii": ("ascii", {}),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": ("cp1256", {0x8A: "?", 0x8F: "?", 0x98: "?", 0x9A: "?", 0x9F: "?", 0xAA: "?", 0xC0: "?", 0xFF: "?"}),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "ⁿ²"}),
    "greek": ("iso8859_7", {0xA1: "ʽʼ", 0xA4: "??", 0xAA: "?"}),
    "hebrew": ("iso8859_8", {0xAF: "‾"}),
    "hp8": ("hp_roman8", {}),
    "koi8r": ("koi8_r", {}),
    "koi8u": ("koi8_u", {0x95: "•"}),
    "latin1": ("cp1252", {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f\x90", 0x9D: "\x9d"}),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "tis620": ("tis_620", {0xA0: "\ufffd", 0xDB: "\ufffd" * 4, 0xFC: "\ufffd" * 4}),
}  # fmt: skip
"""Python's codec, and the runs of characters that differ on the servers, by the first byte of the run."""


_CHARACTER_TABLES: dict[Decoder, str] = {}
"""The characters of single-byte character sets, by their decoders."""


def _single(codec: str, differences: Mapping[int, str]) -> Decoder:
    mapping = characters(codec, differences)
    decode = codecs.charmap_decode

    def text(data: bytes) -> str:
        return decode(data, "strict", mapping)[0]

    _CHARACTER_TABLES[text] = mapping
    return text


# --- multi-byte character sets ---------------------------------------------------------------------------------------


class _Multi(NamedTuple):
    """A multi-byte character set: Python's codec, a regular expression for one character, the differences."""

    codec: str
    character: bytes
    differences: Mapping[bytes, str] = {}


def _user_defined() -> Iterator[tuple[bytes, str]]:
    """Yield the last ten rows of JIS X 0208 and 0212, which the servers map to Unicode's private use area."""
    for prefix, first in ((b"", 0xE000), (b"\x8f", 0xE3AC)):
        for row in range(10):
            yield prefix + bytes([0xF5 + row, 0xA1]), "".join(map(chr, range(first + 94 * row, first + 94 * row + 94)))


_EUC = rb"\x8f[\xa1-\xfe]{2}|[\x8e\xa1-\xfe][\xa1-\xfe]"
_SHIFT_JIS = rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"
_MULTI = {
    "big5": _Multi(
        "big5",
        rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
        {
            b"\xa1\x5a": "\ufffd", b"\xa1\xc3": "\ufffd", b"\xa1\xc5": "\ufffd", b"\xa1\xfe": "\ufffd",
            b"\xa2\x40": "\ufffd", b"\xa2\xcc": "\ufffd", b"\xa2\xce": "\ufffd", b"\xf9\xd6": "碁銹裏墻恒粧嫺",
        },
    ),
    "cp932": _Multi("cp932", _SHIFT_JIS),
    "eucjpms": _Multi(
        "euc_jp",
        _EUC,
        dict(_user_defined())
        | {
            b"\x8f\xa2\xb7": "～",
            b"\x8f\xa2\xc3": "￤",
            b"\x8f\xf3\xf3": "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ",
            b"\x8f\xf4\xa1": "ⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏\ufa10增寬峵嵓﨑德悅愠敎昻晥\ufa12\uf929栁﨓"
            "﨔橫櫢淸淲瀨\ufa15\ufa16甁皂皞\ufa17礰\ufa18\ufa19\ufa1a\ufa1b竧\ufa1c\ufa1d綠緖\ufa1e荢﨟"
            "薰\ufa20﨡蠇\ufa22譿賴赶﨣﨤\ufa25郞\ufa26鄕﨧﨨閒\uf9dc﨩霻靍靑\ufa2a\ufa2b\ufa2c馞髙魲\ufa2d"
            "黑",
            b"\xa1\xc1": "～∥",
            b"\xa1\xdd": "－",
            b"\xa1\xf1": "￠￡",
            b"\xa2\xcc": "￢",
            b"\xad\xa1": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ",
            b"\xad\xc0": "㍉㌔㌢㍍㌘㌧㌃㌶㍑㍗㌍㌦㌣㌫㍊㌻㎜㎝㎞㎎㎏㏄㎡",
            b"\xad\xdf": "㍻〝〟№㏍℡㊤㊥㊦㊧㊨㈱㈲㈹㍾㍽㍼≒≡∫∮∑√⊥∠∟⊿∵∩∪",
        },
    ),
    "euckr": _Multi("cp949", rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]"),
    "gb18030": _Multi(
        "gb18030",
        rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])",
        {b"\xa8\xbc": "\u1e3f", b"\x81\x35\xf4\x37": "\ue7c7"},
    ),
    "gb2312": _Multi("gb2312", rb"[\xa1-\xf7][\xa1-\xfe]"),
    "gbk": _Multi("gbk", rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]"),
    "sjis": _Multi("shift_jis", _SHIFT_JIS, {b"\x81\x5f": "\\"}),
    "ujis": _Multi("euc_jp", _EUC, dict(_user_defined()) | {b"\xa1\xc0": "\\"}),
}  # fmt: skip
"""The differences are runs of characters by the bytes of the first one; the last byte counts up within a run."""


class _Characters(dict[bytes, str]):
    """Characters by their bytes; filled on demand."""

    def __init__(self, codec: str, differences: Mapping[bytes, str]) -> None:
        super().__init__(
            (first[:-1] + bytes([first[-1] + at]), character)
            for first, run in differences.items()
            for at, character in enumerate(run)
        )
        self._codec = codec

    def __missing__(self, key: bytes) -> str:
        text = self[key] = key.decode(self._codec, "replace") if _decodes(key, self._codec) else "?"
        return text


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _multi(charset: _Multi) -> Decoder:
    """Use Python's codec on the whole data, or character by character if it fails or decodes something differently."""
    decode = codecs.getdecoder(charset.codec)
    characters = _Characters(charset.codec, charset.differences)
    wrong = [
        key for key, text in characters.items() if _decodes(key, charset.codec) and key.decode(charset.codec) != text
    ]
    suspect = re.compile(b"|".join(map(re.escape, wrong)) or b"(?!)").search
    split = re.compile(rb"(?s)" + charset.character + rb"|.").findall

    def text(data: bytes) -> str:
        if data.isascii():
            return data.decode("ascii")
        if not suspect(data):
            try:
                return decode(data)[0]
            except UnicodeDecodeError:
                pass
        return "".join(map(characters.__getitem__, split(data)))

    return text


_UNICODE: Mapping[str, Decoder] = {
    "utf8mb3": _utf8,
    "utf8mb4": _utf8,
    "utf16": _utf16,
    "utf16le": _unicode("utf-16-le"),
    "utf32": _unicode("utf-32-be"),
    "ucs2": _ucs2,
}


@cache
def _decoder(charset: str) -> Decoder | None:
    """Return the decoder of a character set, made when it is first used: the tables of all of them are large."""
    if charset in _SINGLE:
        return _single(*_SINGLE[charset])
    if charset in _MULTI:
        return _multi(_MULTI[charset])
    return _UNICODE.get(charset)
