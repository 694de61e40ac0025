"""TLS in front of a Postgres that has none of its own, as the embedded one: with a certificate made for the test."""

import asyncio
import shutil
import ssl
import struct
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.cases.proxy import Proxy

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104  # what a client asks before anything else (PostgreSQL, "Message Formats")


class TlsProxy(Proxy):
    """A proxy to which clients must speak TLS; `handshakes` counts them."""

    def __init__(self, host: str, target_port: int, context: ssl.SSLContext) -> None:
        self.handshakes = 0
        self._context = context
        super().__init__(host, target_port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while (wish := struct.unpack("!ii", await reader.readexactly(8))[1]) == GSS_REQUEST:
                writer.write(b"N")
            if wish != SSL_REQUEST:
                raise ConnectionRefusedError
            writer.write(b"S")
            await writer.start_tls(self._context)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self._open.discard(writer)
            writer.transport.abort()
            return
        self.handshakes += 1
        await super()._accept(reader, writer)


def certificate(folder: Path) -> ssl.SSLContext:
    """A context with a certificate for 127.0.0.1 made in `folder`; skips the test where the program openssl is missing."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the program openssl is missing: no certificate to speak TLS with")
    key, made = folder / "server.key", folder / "server.crt"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context


def before_database(url: str, folder: Path) -> tuple[TlsProxy, str]:
    """A proxy with TLS in front of the Postgres of `url`, and the URL that leads through it and checks its certificate."""
    parsed = make_url(url)
    host = parsed.query.get("host") or parsed.host or "127.0.0.1"
    assert isinstance(host, str)
    made = TlsProxy(host, int(str(parsed.query.get("port") or parsed.port or 5432)), certificate(folder))
    through = parsed.set(host="127.0.0.1", port=made.port).difference_update_query(["host", "port"])
    query = {"sslmode": "verify-full", "sslrootcert": str(folder / "server.crt")}
    return made, through.update_query_dict(query).render_as_string(hide_password=False)
