"""Numbers as Java 17 prints them: the text of ``double``, ``float`` and ``BigDecimal`` values.

Before Java 19, ``Double.toString`` does not always return the shortest digits. It searches for the first digits
strictly within half a unit in the last place, treats both sides of a power of two alike, writes at least two digits
before an exponent, and rounds integers of more than 53 bits by a table (JDK-4511638: 2e23 becomes
``1.9999999999999998E23``). The functions here return the same text: ``repr`` where Java's digits are provably the
shortest ones, otherwise the result of Java's algorithm in ``_digits``, including its overflows of 32 and 64 bits.
"""

from decimal import Decimal
from math import floor, frexp, inf, isfinite, isnan, ldexp, nextafter
from struct import Struct

_DOUBLE_BITS, _FLOAT_BITS = 53, 24
_FLOAT32, _DOUBLE, _DOUBLE_AS_INTEGER = Struct("<f"), Struct("<d"), Struct("<q")
_MAX_SMALL_EXPONENT = 62
_FLOAT_PATTERNS = ("%.6g", "%.7g", "%.8g", "%.9g")
# The number of bits of 5**n, as estimated by Java.
_BITS_OF_5_POWERS = (
    0, 3, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28, 31, 33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56, 59, 61,
)  # fmt: skip


def double_text(x: float) -> str:
    """Return a ``double`` as Jackson writes it: ``Double.toString``, or a quoted ``"NaN"`` or ``"Infinity"``."""
    if 1e-3 <= x < 1e7 or -1e7 < x <= -1e-3:
        # No decimal of 17 digits or fewer lies exactly between two doubles here, powers of two are exact in fewer
        # digits, and Java's 64-bit arithmetic does not overflow: the shortest digits are Java's.
        return repr(x)
    magnitude = -x if x < 0 else x
    if 1e7 <= magnitude < 2.0**50 or (1e-290 < magnitude < 1e-3 and frexp(magnitude)[0] != 0.5):
        return _with_exponent(x)
    if x == 0:
        return repr(x)
    return _exact_text(x, _DOUBLE_BITS, -1074)


def float_text(x: float) -> str:
    """Return a ``float`` as Jackson writes it: ``Float.toString``, or a quoted ``"NaN"`` or ``"Infinity"``.

    Args:
        x: a value that a 32-bit float represents exactly.
    """
    if 1e-3 <= x < 1e6 or -1e6 < x <= -1e-3:
        # No decimal of 9 digits or fewer lies exactly between two floats here: the first length whose nearest decimal
        # is within half a unit in the last place is Java's.
        limit = ldexp(0.5, frexp(x)[1] - _FLOAT_BITS)
        for pattern in _FLOAT_PATTERNS:
            text = pattern % x
            if -limit < float(text) - x < limit:
                return text if "." in text else text + ".0"
    elif x == 0:
        return repr(x)
    return _exact_text(x, _FLOAT_BITS, -149)


def to_float32(x: float) -> float:
    """Return the nearest 32-bit float, infinity outside its range, as Java's ``(float)`` cast does."""
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(x))[0]
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")
    return rounded


def float32_of(number: float | Decimal) -> float:
    """Return the 32-bit float nearest to a number, which may have more digits than a 64-bit one."""
    near = float(number)
    if near != number and isfinite(near) and not _DOUBLE_AS_INTEGER.unpack(_DOUBLE.pack(near))[0] & 1:
        # Rounding twice could round a tie to the wrong side: an odd last bit says that there are more digits.
        near = nextafter(near, inf if number > near else -inf)
    return to_float32(near)


def decimal_number_text(unscaled: int, scale: int) -> str:
    """Return ``BigDecimal.toString``: with an exponent if the scale is negative or the number below 1e-6.

    Jackson writes a decimal like this if ``decimal.format`` is ``NUMERIC``.
    """
    digits = str(abs(unscaled))
    sign = "-" if unscaled < 0 else ""
    if scale == 0:
        return sign + digits
    exponent = len(digits) - 1 - scale
    if scale > 0 and exponent >= -6:
        return decimal_text(unscaled, scale)
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{mantissa}E{exponent:+d}" if exponent else sign + mantissa


def decimal_text(unscaled: int, scale: int) -> str:
    """Return ``BigDecimal.toPlainString``: all digits, without an exponent."""
    if scale <= 0:
        return str(unscaled) + ("0" * -scale if unscaled else "")
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _with_exponent(x: float) -> str:
    """Return the shortest digits in Java's notation with an exponent."""
    mantissa, _, exponent = repr(x).partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    power = int(exponent or 0)
    if whole == "0":  # repr of 1e-4 and above has no exponent
        digits = fraction.lstrip("0")
        power -= len(fraction) - len(digits) + 1
    else:
        power += len(whole) - 1
        digits = (whole + fraction).rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _exact_text(x: float, precision: int, lowest: int) -> str:
    """Return Java's text of a number, with the digits of Java's algorithm.

    Args:
        x: the number, not zero.
        precision: bits of a normal number, 53 or 24.
        lowest: exponent of the smallest number, as a power of two.
    """
    if not isfinite(x):
        return '"NaN"' if isnan(x) else '"Infinity"' if x > 0 else '"-Infinity"'
    fraction, exponent = abs(x).as_integer_ratio()[0], frexp(x)[1] - 1
    fraction >>= (fraction & -fraction).bit_length() - 1
    digits, point = _digits(fraction, exponent, min(precision, exponent - lowest + 1))
    sign = "-" if x < 0 else ""
    if 0 < point < 8:
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _digits(fraction: int, exponent: int, precision: int) -> tuple[str, int]:
    """Return Java's digits of ``1.fraction * 2**exponent`` and the position of the decimal point in them.

    Args:
        fraction: significant bits as an odd number.
        exponent: exponent of the first bit, as a power of two.
        precision: significant bits of the type for numbers of this size.
    """
    bits = fraction.bit_length()
    tiny = max(0, bits - exponent - 1)  # bits after the binary point
    if tiny == 0 and exponent <= _MAX_SMALL_EXPONENT:
        return _integer_digits(fraction << (exponent - bits + 1), exponent - precision - 1)
    power = _estimate(fraction, bits, exponent)
    # value = b / s * 10**power; m is half a unit in the last place, scaled like b. Each is 2**i * 5**j.
    b5, s5 = max(0, -power), max(0, power)
    b2, s2, m2 = b5 + tiny + exponent - bits + 1, s5 + tiny, b5 + tiny + exponent - precision
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common
    if bits == 1:
        m2 -= 1  # the gap below a power of two is smaller; Java narrows both sides
    if m2 < 0:
        b2, s2, m2 = b2 - m2, s2 - m2, 0
    width = _word(bits + b2 + _bits_of_5_power(b5), s2 + 1 + _bits_of_5_power(s5 + 1))
    return _search(fraction * 5**b5 << b2, 5**s5 << s2, 5**b5 << m2, power, width)


def _search(b: int, s: int, m: int, power: int, width: int) -> tuple[str, int]:
    """Return digits of ``b / s`` until the rest or its complement is smaller than ``m``, then rounded.

    Args:
        b: dividend.
        s: divisor.
        m: the tolerance, on the scale of ``b``.
        power: exponent of the first digit, as a power of ten.
        width: bits of the integers that Java calculates with, 0 for big integers.
    """
    tens = s * 10
    digits: list[int] = []
    low = high = False
    first = True
    while first or not (low or high):
        q, rest = divmod(b, s)
        b, m = rest * 10, _wrapped(m * 10, width)
        if m > 0 or first:
            low = b < m
            # Java includes the upper boundary only when it calculates with big integers.
            high = _wrapped(b + m, width) > tens if width else b + m >= tens
        else:
            low = high = True
        if not first or q or high:
            digits.append(q)
        else:
            power -= 1  # the estimate was one too high
        if first and (power < -3 or power >= 8):
            low = high = False  # a number with an exponent has a digit after its point
        first = False
    # A tie goes to the even digit.
    up = high and (not low or 2 * b > tens or (2 * b == tens and digits[-1] % 2 == 1))
    return _rounded(digits, power + 1, up=up)


def _rounded(digits: list[int], point: int, *, up: bool) -> tuple[str, int]:
    """Return the digits as text, incremented by one in the last place if ``up``."""
    if up:
        index = len(digits) - 1
        while digits[index] == 9 and index > 0:
            digits[index] = 0
            index -= 1
        if digits[index] == 9:
            digits[index], point = 1, point + 1
        else:
            digits[index] += 1
    return "".join(map(str, digits)), point


def _integer_digits(value: int, surplus: int) -> tuple[str, int]:
    """Return the digits of an integer without trailing zeros, and the position of the decimal point.

    Args:
        value: the integer, positive.
        surplus: the number of low bits without information; Java rounds away as many digits.
    """
    dropped = len(str(1 << surplus)) - 1 if surplus > 1 else 0
    unit: int = 10**dropped
    value, rest = divmod(value, unit)
    if dropped and rest >= unit // 2:
        value += 1
    text = str(value)
    return text.rstrip("0"), len(text) + dropped


def _estimate(fraction: int, bits: int, exponent: int) -> int:
    """Return Java's estimate of the power of ten, which is exact or one too high."""
    mantissa = fraction / (1 << (bits - 1))
    return floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)


def _bits_of_5_power(n: int) -> int:
    return _BITS_OF_5_POWERS[n] if n < len(_BITS_OF_5_POWERS) else n * 3


def _word(*bits: int) -> int:
    """Return the bits of the integers that Java uses for numbers of that many bits: 32, 64, or 0 for big integers."""
    return 32 if max(bits) < 32 else 64 if max(bits) < 64 else 0


def _wrapped(value: int, width: int) -> int:
    """Return a number wrapped to a signed integer of that many bits."""
    if not width:
        return value
    half = 1 << (width - 1)
    return (value + half) % (2 * half) - half
