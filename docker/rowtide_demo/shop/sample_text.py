"""Words in several scripts, with what is hard in each: accents, combining marks, right to left, surrogate pairs."""

__all__ = ["CITIES", "COUNTRIES", "LEGACY_NAMES", "NAMES", "NOTES", "THINGS", "WISHES"]

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
"""Names that cp1251 has."""

CITIES = ("Zürich", "Málaga", "Tromsø", "Besançon", "Reykjavík", "São Paulo", "Köln", "€-Stadt")
"""Cities that latin1 has, which MySQL takes to be Windows' code page 1252: with a euro sign."""

COUNTRIES = ("AT", "BR", "CH", "DE", "ES", "FR", "GR", "IL", "IN", "JP", "KR", "NO", "TH", "VN")
"""Country codes."""

THINGS = (
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
"""What the shop sells."""

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
"""Wishes of order lines, without what utf8mb3 lacks."""
