"""The processor time of the server per put over HTTP and HTTPS, with and without keep-alive.

The baseline is HTTP with keep-alive. The requests of a client follow one another; the times are
those of the process of the server, so what else runs on the machine hardly matters.
"""

import contextlib
import os
import pathlib
import unittest

from api_test import ApiTest
from figures import figure
from harness import tls_context
from tls_tests import Tls

PUTS = 20000
NEW_CONNECTIONS = 2000


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Puts(ApiTest):
    def put_on(self, connection, headers):
        connection.request("POST", "/api/v1/tubes/mail/jobs", b"x" * 100,
                           {"X-Requested-By": "measure", **headers})
        answer = connection.getresponse()
        answer.read()
        self.assertEqual(answer.status, 201)

    def microseconds(self, daemon, context, kept):
        """Per put."""
        count = PUTS if kept else NEW_CONNECTIONS
        headers = {} if kept else {"Connection": "close"}
        with contextlib.closing(self.connection(daemon, context)) as connection:
            self.put_on(connection, headers)
            begin = processor_seconds(daemon.pid)
            for _ in range(count):
                self.put_on(connection, headers)
        return 1e6 * (processor_seconds(daemon.pid) - begin) / count

    def test_the_cost_of_a_put(self):
        context = tls_context(self.authority)
        plain = self.serve()
        secured = self.serve(http_settings=Tls((self.server,), {}).keys("http.tls."))
        base = self.microseconds(plain, None, kept=True)
        for what, daemon, its_context, kept in (
                ("HTTP with a new connection", plain, None, False),
                ("HTTPS with keep-alive", secured, context, True),
                ("HTTPS with a new connection", secured, context, False)):
            figure(f"processor time of a put, {what}",
                   self.microseconds(daemon, its_context, kept), "us", base, "HTTP with keep-alive")


if __name__ == "__main__":
    unittest.main()
