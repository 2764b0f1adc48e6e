"""The worker imports libraries without what it uses rarely or never; what it needs later is imported then."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

SALT = bytes(range(1, 21))
PASSWORD = b"secret"
OF_CRYPTOGRAPHY = "cryptography.hazmat.bindings._rust"
FAUST = "from rowtide.connector.worker.imports import import_faust; import_faust()"


def run(program: str, *arguments: str) -> str:
    """What a new interpreter prints."""
    command = [sys.executable, "-c", dedent(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_threads_that_log_in_at_the_same_time_encrypt_the_password() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    program = f"""
        import sys
        import threading
        import rowtide.connector.worker
        from pymysql import _auth

        assert {OF_CRYPTOGRAPHY!r} not in sys.modules
        begin = threading.Barrier(8)

        def log_in():
            begin.wait()
            print(_auth.sha2_rsa_encrypt({PASSWORD!r}, {SALT!r}, sys.argv[1].encode()).hex() + chr(10), end="")

        threads = [threading.Thread(target=log_in) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """
    encrypted = [bytes.fromhex(line) for line in run(program, public.decode()).splitlines()]
    sha1 = hashes.SHA1()
    messages = [key.decrypt(one, padding.OAEP(padding.MGF1(sha1), sha1, None)) for one in encrypted]
    assert messages == [bytes(a ^ b for a, b in zip(PASSWORD + b"\0", SALT, strict=False))] * 8


def test_other_programs_in_the_process_get_the_modules_themselves() -> None:
    program = """
        import rowtide.connector.worker
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding

        stand_in = rowtide.connector.worker.imports.PostponedModule
        print(*(isinstance(module, stand_in) for module in (hashes, serialization, padding)))
    """
    assert run(program) == "False False False"


@pytest.mark.parametrize(
    ("stand_in", "use"), [("PostponedModule('slow')", "made"), ("PostponedFunction('slow:make')", "make()")]
)
def test_threads_that_use_a_stand_in_at_the_same_time_get_one_module(stand_in: str, use: str, tmp_path: Path) -> None:
    code = "from time import sleep\nsleep(0.0002)\nmade = object()\ndef make(): return made\n"
    (tmp_path / "slow.py").write_text(code)
    program = f"""
        import sys
        import threading
        from rowtide.connector.worker.imports import PostponedFunction, PostponedModule

        sys.path.insert(0, sys.argv[1])
        sys.setswitchinterval(1e-6)
        different = 0
        for _ in range(1000):
            stand_in = sys.modules["slow"] = {stand_in}
            begin = threading.Barrier(4)
            found = []

            def use():
                begin.wait()
                found.append(stand_in.{use})

            threads = [threading.Thread(target=use) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            different += len(found) != 4 or len(set(found)) != 1
            del sys.modules["slow"]
        print(different)
    """
    assert run(program, str(tmp_path)) == "0"


def test_modules_that_are_imported_already_stay() -> None:
    program = """
        from cryptography.hazmat.primitives import hashes
        import rowtide.connector.worker
        from pymysql import _auth

        print(_auth.hashes is hashes)
    """
    assert run(program) == "True"


def test_other_programs_import_postponed_functions_themselves() -> None:
    program = f"""
        import importlib
        import sys
        {FAUST}
        from rowtide.connector.worker.imports import _OF_FAUST, PostponedModule

        for name in _OF_FAUST:
            module, _, function = name.partition(":")
            imported, found = module in sys.modules, importlib.import_module(module)
            print(imported, isinstance(found, PostponedModule), not function or getattr(found, function).__name__)
    """
    functions = ["ArgumentParser", True, "croniter", "SequenceMatcher", "escape", True, True, "median", True]
    assert run(program).splitlines() == [f"False False {function}" for function in functions]


def test_error_pages_of_aiohttp_import_what_they_use() -> None:
    program = f"""
        {FAUST}
        from aiohttp.web_protocol import html_escape
        from aiohttp.web_urldispatcher import html

        print(html_escape("<"), html.escape(">"), html.unescape("&amp;"))
    """
    assert run(program) == "&lt; &gt; &"


def test_timers_of_faust_import_what_reads_cron_expressions_when_they_are_used() -> None:
    program = f"""
        {FAUST}
        import sys
        from faust.utils import cron
        from mode.utils.cron import secs_for_next

        print("croniter" in sys.modules)
        print(0 < secs_for_next("* * * * *") <= 60, 0 < cron.secs_for_next("* * * * *") <= 60)
    """
    assert run(program).split() == ["False", "True", "True"]


def test_codecs_of_faust_import_their_parser_when_they_are_used() -> None:
    program = f"""
        {FAUST}
        import sys
        from faust.serializers.codecs import dumps

        print("yaml" in sys.modules, dumps("yaml", [1]), "yaml" in sys.modules)
    """
    assert run(program) == "False b'- 1\\n' True"


def test_users_of_aiohttp_get_its_client() -> None:
    program = f"""
        {FAUST}
        import sys
        import aiohttp

        print("aiohttp.client" in sys.modules, hasattr(aiohttp, "Client"))
        from aiohttp import ClientError, ClientSession, TCPConnector
        import aiohttp.client
        import aiohttp.connector

        print(ClientSession is aiohttp.client.ClientSession, TCPConnector is aiohttp.connector.TCPConnector)
        print(issubclass(aiohttp.ClientConnectorError, ClientError), aiohttp.ClientSession is ClientSession)
        print([name for name in aiohttp.__all__ if type(getattr(aiohttp, name)).__name__.startswith("Postponed")])
    """
    assert run(program).splitlines() == ["False False", "True True", "True True", "[]"]


def test_the_client_of_the_app_is_imported_when_it_is_used() -> None:
    program = f"""
        {FAUST}
        import asyncio
        import sys
        from rowtide.connector.worker.base_app import App

        async def client():
            app = App("app")
            app.finalize()
            print("aiohttp.client" in sys.modules)
            session = app.http_client
            print(type(session).__module__, type(session.connector).__module__)
            await session.close()

        asyncio.run(client())
    """
    assert run(program).splitlines() == ["False", "aiohttp.client aiohttp.connector"]


def test_aiohttp_stays_as_it_is_where_it_is_imported_already() -> None:
    program = f"""
        import aiohttp
        session, look_up = aiohttp.ClientSession, aiohttp.__getattr__
        {FAUST}
        print(aiohttp.ClientSession is session, aiohttp.__getattr__ is look_up)
    """
    assert run(program) == "True True"
