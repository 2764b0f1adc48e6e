"""The cache of what was used last."""

from rowtide.connector.records.codecs.recently_used import RecentlyUsed


def test_the_least_recently_used_entries_are_dropped() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(3)
    for number, name in enumerate("abc"):
        cache.put(name, number)
    assert cache.get("a") == 0
    cache.put("d", 3)
    assert [cache.get(name) for name in "abcd"] == [0, None, 2, 3]


def test_sizes_count_together() -> None:
    cache: RecentlyUsed[str, str] = RecentlyUsed(10)
    cache.put("wide", "w", 6)
    cache.put("wide", "x", 4)
    cache.put("other", "o", 6)
    assert (cache.get("wide"), cache.get("other")) == ("x", "o")
    cache.put("narrow", "n", 1)
    assert (cache.get("wide"), len(cache)) == (None, 2)
    cache.discard("other")
    cache.discard("other")
    cache.put("all", "a", 9)
    assert len(cache) == 2


def test_an_entry_over_the_limit_is_alone() -> None:
    cache: RecentlyUsed[str, str] = RecentlyUsed(10)
    cache.put("small", "s")
    cache.put("huge", "h", 4000)
    assert (cache.get("small"), cache.get("huge")) == (None, "h")
