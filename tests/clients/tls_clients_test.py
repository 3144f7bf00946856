#!/usr/bin/env python3
"""Real clients of TLS against tubed: programs for Node and Python, openssl s_client, and the Ruby
client beaneater, which knows no TLS, through stunnel.

  tls_clients_test.py --server build/dev/src/tubed

The test makes an authority and a certificate, and ends only what it has started.
"""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import run_client

SECONDS = run_client.SECONDS
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "daemon"))
from certificates import Authority  # noqa: E402

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


def check(claim, holds):
    if not holds:
        raise run_client.Failure(claim)
    print(f"ok    {claim}")


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


# stunnel cannot choose a port, but takes a listening socket as descriptor 3, like a service of
# systemd: LISTEN_PID is the id of the process that inherits it.
HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execvp(sys.argv[2], sys.argv[2:])
"""


def through_stunnel(directory, address, ca):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = directory / "stunnel.conf"
        settings.write_text(STUNNEL.format(accept=f"127.0.0.1:{port}", host=address[0],
                                           port=address[1], ca=ca), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-c", HAND_OVER, str(listener.fileno()), "stunnel", str(settings)],
            pass_fds=(listener.fileno(),), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # The client waits in the backlog until stunnel accepts.
    try:
        run_program(["ruby", str(HERE / "beaneater.rb")],
                    {"TUBED_TEST_HOST": "127.0.0.1", "TUBED_TEST_PORT": str(port)})
    finally:
        process.terminate()
        process.wait(SECONDS)


def run(directory, program):
    authority = Authority(directory)
    certificate = authority.issue("server", names=("DNS:localhost", "IP:127.0.0.1"))
    settings = directory / "tubed.toml"
    settings.write_text(f'[[listen]]\naddress = "127.0.0.1:0"\n'
                        f'tls.certificate = "{certificate.certificate}"\n'
                        f'tls.key = "{certificate.key}"\n', encoding="utf-8")
    for use in (programs, through_stunnel):
        server = run_client.Server([program, "--config", str(settings)], cwd=directory)
        try:
            use(directory, server.wait_for_address(), authority.ca)
        except Exception:
            print("tls_clients_test: the server's last lines:", *server.log[-20:], sep="\n  ",
                  file=sys.stderr)
            raise
        finally:
            server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tubed-tls-clients-") as directory:
        try:
            run(pathlib.Path(directory), str(options.server.resolve()))
        except (run_client.Failure, OSError, subprocess.TimeoutExpired) as error:
            print(f"tls_clients_test: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
