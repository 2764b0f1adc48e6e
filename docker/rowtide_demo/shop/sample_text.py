"""Sample text in several scripts: accents, combining marks, right-to-left text, characters beyond the BMP."""

__all__ = ["CITIES", "COUNTRIES", "LEGACY_NAMES", "NAMES", "NOTES", "PRODUCTS", "WISHES"]

NAMES = (
    ("Zoë", "Ångström"),
    ("Łukasz", "Żółć"),
    ("Nguyễn", "Thị Hạnh"),
    ("Ольга", "Щербакова"),
    ("Γιώργος", "Παπαδόπουλος"),
    ("דוד", "כהן"),
    ("ليلى", "الحسيني"),
    ("अनुष्का", "श्रीवास्तव"),
    ("สมชาย", "ใจดี"),
    ("偉", "王"),
    ("さくら", "高橋"),
    ("민준", "김"),
    ("𠮷子", "𡈽屋"),
    ("O'Brien", 'the "Quick"'),
    ("Renée", "d’Été"),
    ("Åsa", "Back\\slash"),
)
"""First and last names."""

LEGACY_NAMES = ("Щербакова Ольга", "Іваненко Ґанна", "Ђорђевић", "“Чай” №5", "Ёлкин")
"""Names that cp1251 can encode."""

CITIES = ("Zürich", "Málaga", "Tromsø", "Besançon", "Reykjavík", "São Paulo", "Köln", "€-Stadt")
"""Cities that latin1 can encode. MySQL's latin1 is Windows' code page 1252, which has a euro sign."""

COUNTRIES = ("AT", "BR", "CH", "DE", "ES", "FR", "GR", "IL", "IN", "JP", "KR", "NO", "TH", "VN")
"""Country codes (ISO 3166)."""

PRODUCTS = (
    "Teapot",
    "Čajník",
    "Чайник",
    "τσαγιέρα",
    "קומקום",
    "إبريق شاي",
    "चायदानी",
    "กาน้ำชา",
    "茶壺",
    "急須",
    "찻주전자",
    "🫖 teapot 👩‍👩‍👧",
)
"""Product names."""

NOTES = (
    "Please ring twice.",
    "Bitte beim Nachbarn abgeben – danke!",
    "Звонок не работает",
    "השאירו ליד הדלת",
    "اترك الطرد عند الباب",
    "请放在门口\n谢谢",
    "ドアの前に\tお願いします",
    '🎁 it\'s a "surprise" \\o/',
    "",
)
"""Notes of orders."""

WISHES = ("blue", "größer", "в подарок", "赤い", 'with "ribbon"', "50% + 'extra'")
"""Wishes of order lines, without characters that utf8mb3 cannot encode."""
