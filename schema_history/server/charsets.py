"""Character sets and collations of both servers, and the Python codecs for their text.

The lists of collations are those of MySQL 9.7 and MariaDB 11.4 (``information_schema``), whose ids never
change.
"""

import re
from functools import cache

from rowtide.schema_history.server.lacking_codecs import LACKING
from rowtide.schema_history.server.query_event import Flavor

_BOTH = """
1:big5_chinese_ci 2:latin2_czech_cs 3:dec8_swedish_ci 4:cp850_general_ci 5:latin1_german1_ci 6:hp8_english_ci
7:koi8r_general_ci 8:latin1_swedish_ci 9:latin2_general_ci 10:swe7_swedish_ci 11:ascii_general_ci
12:ujis_japanese_ci 13:sjis_japanese_ci 14:cp1251_bulgarian_ci 15:latin1_danish_ci 16:hebrew_general_ci
18:tis620_thai_ci 19:euckr_korean_ci 20:latin7_estonian_cs 21:latin2_hungarian_ci 22:koi8u_general_ci
23:cp1251_ukrainian_ci 24:gb2312_chinese_ci 25:greek_general_ci 26:cp1250_general_ci 27:latin2_croatian_ci
28:gbk_chinese_ci 29:cp1257_lithuanian_ci 30:latin5_turkish_ci 31:latin1_german2_ci 32:armscii8_general_ci
33:utf8mb3_general_ci 34:cp1250_czech_cs 35:ucs2_general_ci 36:cp866_general_ci 37:keybcs2_general_ci
38:macce_general_ci 39:macroman_general_ci 40:cp852_general_ci 41:latin7_general_ci 42:latin7_general_cs
43:macce_bin 44:cp1250_croatian_ci 45:utf8mb4_general_ci 46:utf8mb4_bin 47:latin1_bin 48:latin1_general_ci
49:latin1_general_cs 50:cp1251_bin 51:cp1251_general_ci 52:cp1251_general_cs 53:macroman_bin 54:utf16_general_ci
55:utf16_bin 56:utf16le_general_ci 57:cp1256_general_ci 58:cp1257_bin 59:cp1257_general_ci 60:utf32_general_ci
61:utf32_bin 62:utf16le_bin 63:binary 64:armscii8_bin 65:ascii_bin 66:cp1250_bin 67:cp1256_bin 68:cp866_bin
69:dec8_bin 70:greek_bin 71:hebrew_bin 72:hp8_bin 73:keybcs2_bin 74:koi8r_bin 75:koi8u_bin 77:latin2_bin
78:latin5_bin 79:latin7_bin 80:cp850_bin 81:cp852_bin 82:swe7_bin 83:utf8mb3_bin 84:big5_bin 85:euckr_bin
86:gb2312_bin 87:gbk_bin 88:sjis_bin 89:tis620_bin 90:ucs2_bin 91:ujis_bin 92:geostd8_general_ci 93:geostd8_bin
94:latin1_spanish_ci 95:cp932_japanese_ci 96:cp932_bin 97:eucjpms_japanese_ci 98:eucjpms_bin 99:cp1250_polish_ci
101:utf16_unicode_ci 102:utf16_icelandic_ci 103:utf16_latvian_ci 104:utf16_romanian_ci 105:utf16_slovenian_ci
106:utf16_polish_ci 107:utf16_estonian_ci 108:utf16_spanish_ci 109:utf16_swedish_ci 110:utf16_turkish_ci
111:utf16_czech_ci 112:utf16_danish_ci 113:utf16_lithuanian_ci 114:utf16_slovak_ci 115:utf16_spanish2_ci
116:utf16_roman_ci 117:utf16_persian_ci 118:utf16_esperanto_ci 119:utf16_hungarian_ci 120:utf16_sinhala_ci
121:utf16_german2_ci 123:utf16_unicode_520_ci 124:utf16_vietnamese_ci 128:ucs2_unicode_ci 129:ucs2_icelandic_ci
130:ucs2_latvian_ci 131:ucs2_romanian_ci 132:ucs2_slovenian_ci 133:ucs2_polish_ci 134:ucs2_estonian_ci
135:ucs2_spanish_ci 136:ucs2_swedish_ci 137:ucs2_turkish_ci 138:ucs2_czech_ci 139:ucs2_danish_ci
140:ucs2_lithuanian_ci 141:ucs2_slovak_ci 142:ucs2_spanish2_ci 143:ucs2_roman_ci 144:ucs2_persian_ci
145:ucs2_esperanto_ci 146:ucs2_hungarian_ci 147:ucs2_sinhala_ci 148:ucs2_german2_ci 150:ucs2_unicode_520_ci
151:ucs2_vietnamese_ci 159:ucs2_general_mysql500_ci 160:utf32_unicode_ci 161:utf32_icelandic_ci
162:utf32_latvian_ci 163:utf32_romanian_ci 164:utf32_slovenian_ci 165:utf32_polish_ci 166:utf32_estonian_ci
167:utf32_spanish_ci 168:utf32_swedish_ci 169:utf32_turkish_ci 170:utf32_czech_ci 171:utf32_danish_ci
172:utf32_lithuanian_ci 173:utf32_slovak_ci 174:utf32_spanish2_ci 175:utf32_roman_ci 176:utf32_persian_ci
177:utf32_esperanto_ci 178:utf32_hungarian_ci 179:utf32_sinhala_ci 180:utf32_german2_ci 182:utf32_unicode_520_ci
183:utf32_vietnamese_ci 192:utf8mb3_unicode_ci 193:utf8mb3_icelandic_ci 194:utf8mb3_latvian_ci
195:utf8mb3_romanian_ci 196:utf8mb3_slovenian_ci 197:utf8mb3_polish_ci 198:utf8mb3_estonian_ci
199:utf8mb3_spanish_ci 200:utf8mb3_swedish_ci 201:utf8mb3_turkish_ci 202:utf8mb3_czech_ci 203:utf8mb3_danish_ci
204:utf8mb3_lithuanian_ci 205:utf8mb3_slovak_ci 206:utf8mb3_spanish2_ci 207:utf8mb3_roman_ci
208:utf8mb3_persian_ci 209:utf8mb3_esperanto_ci 210:utf8mb3_hungarian_ci 211:utf8mb3_sinhala_ci
212:utf8mb3_german2_ci 214:utf8mb3_unicode_520_ci 215:utf8mb3_vietnamese_ci 223:utf8mb3_general_mysql500_ci
224:utf8mb4_unicode_ci 225:utf8mb4_icelandic_ci 226:utf8mb4_latvian_ci 227:utf8mb4_romanian_ci
228:utf8mb4_slovenian_ci 229:utf8mb4_polish_ci 230:utf8mb4_estonian_ci 231:utf8mb4_spanish_ci
232:utf8mb4_swedish_ci 233:utf8mb4_turkish_ci 234:utf8mb4_czech_ci 235:utf8mb4_danish_ci
236:utf8mb4_lithuanian_ci 237:utf8mb4_slovak_ci 238:utf8mb4_spanish2_ci 239:utf8mb4_roman_ci
240:utf8mb4_persian_ci 241:utf8mb4_esperanto_ci 242:utf8mb4_hungarian_ci 243:utf8mb4_sinhala_ci
244:utf8mb4_german2_ci 246:utf8mb4_unicode_520_ci 247:utf8mb4_vietnamese_ci 255:utf8mb4_0900_ai_ci
256:utf8mb4_de_pb_0900_ai_ci 257:utf8mb4_is_0900_ai_ci 258:utf8mb4_lv_0900_ai_ci 259:utf8mb4_ro_0900_ai_ci
260:utf8mb4_sl_0900_ai_ci 261:utf8mb4_pl_0900_ai_ci 262:utf8mb4_et_0900_ai_ci 263:utf8mb4_es_0900_ai_ci
264:utf8mb4_sv_0900_ai_ci 265:utf8mb4_tr_0900_ai_ci 266:utf8mb4_cs_0900_ai_ci 267:utf8mb4_da_0900_ai_ci
268:utf8mb4_lt_0900_ai_ci 269:utf8mb4_sk_0900_ai_ci 270:utf8mb4_es_trad_0900_ai_ci 271:utf8mb4_la_0900_ai_ci
273:utf8mb4_eo_0900_ai_ci 274:utf8mb4_hu_0900_ai_ci 275:utf8mb4_hr_0900_ai_ci 277:utf8mb4_vi_0900_ai_ci
278:utf8mb4_0900_as_cs 279:utf8mb4_de_pb_0900_as_cs 280:utf8mb4_is_0900_as_cs 281:utf8mb4_lv_0900_as_cs
282:utf8mb4_ro_0900_as_cs 283:utf8mb4_sl_0900_as_cs 284:utf8mb4_pl_0900_as_cs 285:utf8mb4_et_0900_as_cs
286:utf8mb4_es_0900_as_cs 287:utf8mb4_sv_0900_as_cs 288:utf8mb4_tr_0900_as_cs 289:utf8mb4_cs_0900_as_cs
290:utf8mb4_da_0900_as_cs 291:utf8mb4_lt_0900_as_cs 292:utf8mb4_sk_0900_as_cs 293:utf8mb4_es_trad_0900_as_cs
294:utf8mb4_la_0900_as_cs 296:utf8mb4_eo_0900_as_cs 297:utf8mb4_hu_0900_as_cs 298:utf8mb4_hr_0900_as_cs
300:utf8mb4_vi_0900_as_cs 305:utf8mb4_0900_as_ci 309:utf8mb4_0900_bin
"""
_MYSQL = """
76:utf8mb3_tolower_ci 122:utf16_croatian_ci 149:ucs2_croatian_ci 181:utf32_croatian_ci 213:utf8mb3_croatian_ci
245:utf8mb4_croatian_ci 248:gb18030_chinese_ci 249:gb18030_bin 250:gb18030_unicode_520_ci
303:utf8mb4_ja_0900_as_cs 304:utf8mb4_ja_0900_as_cs_ks 306:utf8mb4_ru_0900_ai_ci 307:utf8mb4_ru_0900_as_cs
308:utf8mb4_zh_0900_as_cs 310:utf8mb4_nb_0900_ai_ci 311:utf8mb4_nb_0900_as_cs 312:utf8mb4_nn_0900_ai_ci
313:utf8mb4_nn_0900_as_cs 314:utf8mb4_sr_latn_0900_ai_ci 315:utf8mb4_sr_latn_0900_as_cs
316:utf8mb4_bs_0900_ai_ci 317:utf8mb4_bs_0900_as_cs 318:utf8mb4_bg_0900_ai_ci 319:utf8mb4_bg_0900_as_cs
320:utf8mb4_gl_0900_ai_ci 321:utf8mb4_gl_0900_as_cs 322:utf8mb4_mn_cyrl_0900_ai_ci
323:utf8mb4_mn_cyrl_0900_as_cs
"""
_MARIADB = """
122:utf16_croatian_mysql561_ci 149:ucs2_croatian_mysql561_ci 181:utf32_croatian_mysql561_ci
213:utf8mb3_croatian_mysql561_ci 245:utf8mb4_croatian_mysql561_ci 576:utf8mb3_croatian_ci 577:utf8mb3_myanmar_ci
578:utf8mb3_thai_520_w2 608:utf8mb4_croatian_ci 609:utf8mb4_myanmar_ci 610:utf8mb4_thai_520_w2
640:ucs2_croatian_ci 641:ucs2_myanmar_ci 642:ucs2_thai_520_w2 672:utf16_croatian_ci 673:utf16_myanmar_ci
674:utf16_thai_520_w2 736:utf32_croatian_ci 737:utf32_myanmar_ci 738:utf32_thai_520_w2
1025:big5_chinese_nopad_ci 1027:dec8_swedish_nopad_ci 1028:cp850_general_nopad_ci 1030:hp8_english_nopad_ci
1031:koi8r_general_nopad_ci 1032:latin1_swedish_nopad_ci 1033:latin2_general_nopad_ci 1034:swe7_swedish_nopad_ci
1035:ascii_general_nopad_ci 1036:ujis_japanese_nopad_ci 1037:sjis_japanese_nopad_ci 1040:hebrew_general_nopad_ci
1042:tis620_thai_nopad_ci 1043:euckr_korean_nopad_ci 1046:koi8u_general_nopad_ci 1048:gb2312_chinese_nopad_ci
1049:greek_general_nopad_ci 1050:cp1250_general_nopad_ci 1052:gbk_chinese_nopad_ci 1054:latin5_turkish_nopad_ci
1056:armscii8_general_nopad_ci 1057:utf8mb3_general_nopad_ci 1059:ucs2_general_nopad_ci
1060:cp866_general_nopad_ci 1061:keybcs2_general_nopad_ci 1062:macce_general_nopad_ci
1063:macroman_general_nopad_ci 1064:cp852_general_nopad_ci 1065:latin7_general_nopad_ci 1067:macce_nopad_bin
1069:utf8mb4_general_nopad_ci 1070:utf8mb4_nopad_bin 1071:latin1_nopad_bin 1074:cp1251_nopad_bin
1075:cp1251_general_nopad_ci 1077:macroman_nopad_bin 1078:utf16_general_nopad_ci 1079:utf16_nopad_bin
1080:utf16le_general_nopad_ci 1081:cp1256_general_nopad_ci 1082:cp1257_nopad_bin 1083:cp1257_general_nopad_ci
1084:utf32_general_nopad_ci 1085:utf32_nopad_bin 1086:utf16le_nopad_bin 1088:armscii8_nopad_bin
1089:ascii_nopad_bin 1090:cp1250_nopad_bin 1091:cp1256_nopad_bin 1092:cp866_nopad_bin 1093:dec8_nopad_bin
1094:greek_nopad_bin 1095:hebrew_nopad_bin 1096:hp8_nopad_bin 1097:keybcs2_nopad_bin 1098:koi8r_nopad_bin
1099:koi8u_nopad_bin 1101:latin2_nopad_bin 1102:latin5_nopad_bin 1103:latin7_nopad_bin 1104:cp850_nopad_bin
1105:cp852_nopad_bin 1106:swe7_nopad_bin 1107:utf8mb3_nopad_bin 1108:big5_nopad_bin 1109:euckr_nopad_bin
1110:gb2312_nopad_bin 1111:gbk_nopad_bin 1112:sjis_nopad_bin 1113:tis620_nopad_bin 1114:ucs2_nopad_bin
1115:ujis_nopad_bin 1116:geostd8_general_nopad_ci 1117:geostd8_nopad_bin 1119:cp932_japanese_nopad_ci
1120:cp932_nopad_bin 1121:eucjpms_japanese_nopad_ci 1122:eucjpms_nopad_bin 1125:utf16_unicode_nopad_ci
1147:utf16_unicode_520_nopad_ci 1152:ucs2_unicode_nopad_ci 1174:ucs2_unicode_520_nopad_ci
1184:utf32_unicode_nopad_ci 1206:utf32_unicode_520_nopad_ci 1216:utf8mb3_unicode_nopad_ci
1238:utf8mb3_unicode_520_nopad_ci 1248:utf8mb4_unicode_nopad_ci 1270:utf8mb4_unicode_520_nopad_ci
"""
_UCA1400_FIRST = {"utf8mb3": 2048, "utf8mb4": 2304, "ucs2": 2560, "utf16": 2816, "utf32": 3072}
_UCA1400_LANGUAGES = """
- icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish
lithuanian slovak spanish2 roman persian esperanto hungarian sinhala german2 ? ? vietnamese croatian
"""
_UCA1400_SUFFIXES = "ai_ci ai_cs as_ci as_cs nopad_ai_ci nopad_ai_cs nopad_as_ci nopad_as_cs"
# Character set, its default collation, bytes of its longest character
_CHARSETS = """
armscii8:armscii8_general_ci:1  ascii:ascii_general_ci:1  big5:big5_chinese_ci:2  binary:binary:1
cp1250:cp1250_general_ci:1  cp1251:cp1251_general_ci:1  cp1256:cp1256_general_ci:1  cp1257:cp1257_general_ci:1
cp850:cp850_general_ci:1  cp852:cp852_general_ci:1  cp866:cp866_general_ci:1  cp932:cp932_japanese_ci:2
dec8:dec8_swedish_ci:1  eucjpms:eucjpms_japanese_ci:3  euckr:euckr_korean_ci:2  gb18030:gb18030_chinese_ci:4
gb2312:gb2312_chinese_ci:2  gbk:gbk_chinese_ci:2  geostd8:geostd8_general_ci:1  greek:greek_general_ci:1
hebrew:hebrew_general_ci:1  hp8:hp8_english_ci:1  keybcs2:keybcs2_general_ci:1  koi8r:koi8r_general_ci:1
koi8u:koi8u_general_ci:1  latin1:latin1_swedish_ci:1  latin2:latin2_general_ci:1  latin5:latin5_turkish_ci:1
latin7:latin7_general_ci:1  macce:macce_general_ci:1  macroman:macroman_general_ci:1  sjis:sjis_japanese_ci:2
swe7:swe7_swedish_ci:1  tis620:tis620_thai_ci:1  ucs2:ucs2_general_ci:2  ujis:ujis_japanese_ci:3
utf16:utf16_general_ci:4  utf16le:utf16le_general_ci:4  utf32:utf32_general_ci:4  utf8mb3:utf8mb3_general_ci:3
utf8mb4:utf8mb4_0900_ai_ci:4
"""
# Python's names where they differ, and the codecs of sets that Python lacks.
_CODECS = {
    **{charset: f"rowtide_{charset}" for charset in LACKING},
    "ascii": "ascii",
    "big5": "big5",
    "binary": "latin-1",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "ujis": "euc_jp",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
}


def _pairs(text: str) -> dict[int, str]:
    return {int(number): name for number, name in (pair.split(":") for pair in text.split())}


@cache
def _collations(flavor: Flavor) -> dict[int, str]:
    names = _pairs(_BOTH) | _pairs(_MYSQL if flavor is Flavor.MYSQL else _MARIADB)
    if flavor is Flavor.MYSQL:
        return names
    languages = ["" if name == "-" else f"{name}_" for name in _UCA1400_LANGUAGES.split()]
    for charset, first in _UCA1400_FIRST.items():
        for at, language in enumerate(languages):
            for n, suffix in enumerate(_UCA1400_SUFFIXES.split()):
                if language != "?_":
                    names[first + 8 * at + n] = f"{charset}_uca1400_{language}{suffix}"
    return names


@cache
def _names(flavor: Flavor) -> frozenset[str]:
    return frozenset(_collations(flavor).values())


_DEFAULTS = {name: collation for name, collation, _ in (entry.split(":") for entry in _CHARSETS.split())}
_WIDTHS = {name: int(width) for name, _, width in (entry.split(":") for entry in _CHARSETS.split())}


def collation_name(number: int, flavor: Flavor) -> str | None:
    """Return the collation with that id, or ``None``."""
    return _collations(flavor).get(number)


def charset_of(collation: str) -> str:
    """Return the character set of a collation."""
    return collation.split("_", 1)[0]


def is_charset(name: str) -> bool:
    """Return whether a character set of that name exists."""
    return charset_name(name) in _DEFAULTS


def charset_name(name: str) -> str:
    """Return the server's name of a character set: in lower case, and ``utf8mb3`` for ``utf8``."""
    name = name.lower()
    return "utf8mb3" if name == "utf8" else name


def known_collation(name: str, charset: str | None, flavor: Flavor) -> str | None:
    """Return the full name of a collation, or ``None`` if it is unknown.

    Args:
        name: as written.
        charset: the character set of MariaDB's short names, such as ``uca1400_ai_ci``.
        flavor: the server.
    """
    name = name.lower()
    if name.startswith("utf8_"):
        name = "utf8mb3_" + name[5:]
    names = _names(flavor)
    if name in names:
        return name
    if charset is not None and f"{charset}_{name}" in names:
        return f"{charset}_{name}"
    return None


def default_collation(charset: str, flavor: Flavor, version_number: int) -> str:
    """Return the default collation of a character set.

    Raises:
        KeyError: the character set does not exist.
    """
    if charset == "utf8mb4" and (flavor is Flavor.MARIADB or version_number < 80001):
        return "utf8mb4_general_ci"
    return _DEFAULTS[charset]


def binary_collation(charset: str) -> str:
    """Return the ``_bin`` collation of a character set."""
    return "binary" if charset == "binary" else f"{charset}_bin"


def max_bytes(charset: str) -> int:
    """Return the number of bytes of the longest character."""
    return _WIDTHS[charset]


def is_ascii_based(charset: str) -> bool:
    """Return whether ASCII text has its ASCII bytes in the character set."""
    return charset not in ("ucs2", "utf16", "utf16le", "utf32")


def codec(charset: str) -> str:
    """Return the name of the Python codec of a character set."""
    return _CODECS.get(charset, charset)


def decoded(data: bytes, charset: str, *, marks_bytes: bool = False) -> str:
    """Decode bytes.

    In a character set of two or four bytes per unit, leading zeros of the first unit may be missing. Invalid bytes
    become ``?``, with ``marks_bytes`` one for each byte.
    """
    if charset in ("ucs2", "utf16", "utf32"):
        unit = 4 if charset == "utf32" else 2
        data = data.rjust((len(data) + unit - 1) // unit * unit, b"\0")
        return data.decode(codec(charset), "replace").replace("\ufffd", "?" * (unit if marks_bytes else 1))
    return data.decode(codec(charset), "surrogateescape")


def unicode_text(text: str) -> str:
    """Return the text with U+FFFD for bytes that are not characters, as in Java.

    UTF-8 can encode it.
    """
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


_SURROGATES = re.compile("[\ud800-\udfff]")


def representable(text: str, charset: str) -> str:
    """Return the text as stored in a column of the character set: with ``?`` for characters that the set lacks."""
    if text.isascii() or charset in ("utf8mb4", "binary"):
        return text
    if charset in ("utf8mb3", "ucs2"):
        return "".join(c if ord(c) < 0x10000 else "?" for c in text)
    name = codec(charset)
    kept = _LATIN1_CONTROLS if charset == "latin1" else frozenset()
    if kept.isdisjoint(text):
        return text.encode(name, "replace").decode(name, "replace")
    return "".join(c if c in kept else c.encode(name, "replace").decode(name, "replace") for c in text)


_LATIN1_CONTROLS: frozenset[str] = frozenset("\x81\x8d\x8f\x90\x9d")
"""Control characters of MySQL's latin1 where Windows-1252 has none."""
