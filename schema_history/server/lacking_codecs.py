"""Codecs of the servers' single-byte character sets that Python lacks, registered as ``rowtide_`` and their names."""

import codecs
from collections.abc import Mapping

LACKING: Mapping[str, tuple[str, Mapping[int, str]]] = {
    "armscii8": (
        "latin_1",
        {
            0xA1: "❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'",
        },
    ),
    "dec8": (
        "latin_1",
        {
            0xA4: "?", 0xA6: "?", 0xA8: "¤", 0xAC: "????", 0xB4: "?", 0xB8: "?", 0xBE: "?", 0xD0: "?", 0xD7: "Œ",
            0xDD: "Ÿ?", 0xF0: "?", 0xF7: "œ", 0xFD: "ÿ??",
        },
    ),
    "geostd8": (
        "cp1252",
        {
            0x83: "?", 0x88: "?", 0x8A: "?", 0x8C: "?", 0x8E: "?", 0x98: "???", 0x9C: "?", 0x9E: "??",
            0xC0: "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ???????????????????????№??",
        },
    ),
    "keybcs2": (
        "cp850",
        {
            0x80: "Č", 0x83: "ď", 0x85: "ĎŤčěĚĹÍľĺ", 0x8F: "Á", 0x91: "žŽ", 0x95: "ÓůÚý", 0x9B: "ŠĽÝŘť",
            0xA4: "ňŇŮÔšřŕŔ", 0xB5: "╡╢╖╕", 0xBD: "╜╛", 0xC6: "╞╟", 0xCF: "╧╨╤╥╙╘╒╓╫╪", 0xDD: "▌▐", 0xE0: "α",
            0xE2: "ΓπΣσ", 0xE7: "τΦΘΩδ∞φε∩≡", 0xF2: "≥≤⌠⌡", 0xF7: "≈", 0xF9: "∙", 0xFB: "√ⁿ",
        },
    ),
    "swe7": ("ascii", {0x40: "É", 0x5B: "ÄÖÅÜ", 0x60: "é", 0x7B: "äöåü?"}),
}  # fmt: skip
"""A similar codec of Python, and the runs of characters that differ on the servers, by the first byte of the run."""


def characters(codec: str, differences: Mapping[int, str]) -> str:
    """Return the 256 characters of a set by their bytes; ``?`` for bytes without a character."""
    table = [bytes([byte]).decode(codec, "replace").replace("\ufffd", "?") for byte in range(256)]
    for first, run in differences.items():
        table[first : first + len(run)] = run
    return "".join(table)


def _codec_info(name: str) -> codecs.CodecInfo | None:
    definition = LACKING.get(name.removeprefix("rowtide_")) if name.startswith("rowtide_") else None
    if definition is None:
        return None
    table = characters(*definition)
    numbers = {ord(character): byte for byte, character in reversed([*enumerate(table)])}  # the first of several

    def encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
        return codecs.charmap_encode(text, errors, numbers)

    def decode(data: bytes, errors: str = "strict") -> tuple[str, int]:
        return codecs.charmap_decode(data, errors, table)

    return codecs.CodecInfo(encode, decode, name=name)  # type: ignore[arg-type]


codecs.register(_codec_info)
