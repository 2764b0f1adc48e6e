"""Addresses of brokers and URLs."""

import pytest

from rowtide.topics.addresses import server_problems, url_problem


@pytest.mark.parametrize("servers", ["a:1", "a:1, b-c.d:65535", "[::1]:9092", "SSL://a:9093", "a:1,"])
def test_valid_servers_have_no_problem(servers: str) -> None:
    assert list(server_problems(servers)) == []


@pytest.mark.parametrize(
    ("servers", "problems"),
    [
        (",", ["names no broker: give host:port,…"]),
        ("a", ["'a' is not of the form host:port"]),
        ("a:0,b:65536,c:9", ["'a:0' is not of the form host:port", "'b:65536' is not of the form host:port"]),
    ],
)
def test_each_wrong_server_is_a_problem(servers: str, problems: list[str]) -> None:
    assert list(server_problems(servers)) == problems


@pytest.mark.parametrize("url", ["http://a", "https://user:pass@a.b:8081/x?y=1", "http://[::1]:80/"])
def test_valid_urls_have_no_problem(url: str) -> None:
    assert url_problem(url) is None


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://a", "'ftp://a' is not of the form http://host:port or https://host:port"),
        ("registry:8081", "'registry:8081' is not of the form http://host:port or https://host:port"),
        ("http://", "'http://' is not of the form http://host:port or https://host:port"),
        ("http://a:65536", "'http://a:65536': the port is not between 1 and 65535"),
        ("http://a:0", "'http://a:0': the port is not between 1 and 65535"),
        ("http://a:x", "'http://a:x' is not of the form http://host:port or https://host:port"),
        ("http://a b", "'http://a b' is not of the form http://host:port or https://host:port"),
        ("http://user:secret@a:x", "'http://a:x' is not of the form http://host:port or https://host:port"),
    ],
)
def test_a_wrong_url_is_named_without_its_password(url: str, problem: str) -> None:
    assert url_problem(url) == problem
