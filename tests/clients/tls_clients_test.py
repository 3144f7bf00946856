#!/usr/bin/env python3
"""Real clients of TLS against tubed: programs for Node and Python, openssl s_client, and the Ruby
client beaneater, which has no TLS, through stunnel.

  tls_clients_test.py --server build/dev/src/tubed

The test makes an authority and a certificate, and ends only the processes that it has started.
"""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import run_client
from run_client import check
from certificates import Authority  # in tests/daemon, see run_client
from harness import SECONDS, Daemon, Process, parse_address

HERE = pathlib.Path(__file__).parent

STUNNEL = """
foreground = yes
debug = notice
pid =
[queue]
client = yes
accept = {accept}
connect = {host}:{port}
verifyChain = yes
checkHost = localhost
CAfile = {ca}
"""


def run_program(command, environment):
    done = subprocess.run(command, env=os.environ | environment, timeout=SECONDS, check=False,
                          stdin=subprocess.DEVNULL)
    check(f"{pathlib.Path(command[-1]).name} ends with 0", done.returncode == 0)


def s_client(address, ca):
    done = subprocess.run(["openssl", "s_client", "-connect", f"{address[0]}:{address[1]}",
                           "-CAfile", str(ca), "-verify_return_error", "-verify_hostname",
                           "localhost", "-alpn", "beanstalk", "-quiet", "-crlf"],
                          input=b"put 0 0 60 5\nhello\nreserve\ndelete 1\nquit\n",
                          capture_output=True, timeout=SECONDS, check=False)
    replies = b"RESERVED 1 5\r\nhello\r\nDELETED\r\n"
    check("openssl s_client puts, reserves and deletes",
          done.stdout == b"INSERTED 1\r\n" + replies)


def programs(_, address, ca):
    s_client(address, ca)
    environment = {"TUBED_TEST_HOST": address[0], "TUBED_TEST_PORT": str(address[1]),
                   "TUBED_TEST_CA": str(ca)}
    run_program([sys.executable, str(HERE / "tls.py")], environment)
    run_program(["node", str(HERE / "tls.mjs")], environment)


def through_stunnel(directory, address, ca):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = directory / "stunnel.conf"
        settings.write_text(STUNNEL.format(accept=f"127.0.0.1:{port}", host=address[0],
                                           port=address[1], ca=ca), encoding="utf-8")
        stunnel = Process(["stunnel", str(settings)], sockets=[listener])
    # The client waits in the backlog until stunnel accepts.
    try:
        run_program(["ruby", str(HERE / "beaneater.rb")],
                    {"TUBED_TEST_HOST": "127.0.0.1", "TUBED_TEST_PORT": str(port)})
    finally:
        stunnel.end()


def run(directory, program):
    authority = Authority(directory)
    certificate = authority.issue("server", names=("DNS:localhost", "IP:127.0.0.1"))
    settings = directory / "tubed.toml"
    settings.write_text(f'[[listen]]\naddress = "127.0.0.1:0"\n'
                        f'tls.certificate = "{certificate.certificate}"\n'
                        f'tls.key = "{certificate.key}"\n', encoding="utf-8")
    for use in (programs, through_stunnel):
        server = Daemon(["--config", str(settings)], command=[program])
        try:
            use(directory, parse_address(server.addresses[0])[1], authority.ca)
        except Exception:
            print("tls_clients_test: the server's last lines:", *server.lines[-20:], sep="\n  ",
                  file=sys.stderr)
            raise
        finally:
            run_client.end(server)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tubed-tls-clients-") as directory:
        try:
            run(pathlib.Path(directory), str(options.server.resolve()))
        except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
            print(f"tls_clients_test: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
