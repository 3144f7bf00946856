"""tubectl without standard streams: output does not go to another descriptor, and no job is lost.
"""

import subprocess
import unittest

from programs import IO, SECONDS, TUBECTL, TubectlTest


class StreamsTest(TubectlTest):
    def shell(self, server, command):
        """Returns the exit code of a shell command in which $0 is tubectl."""
        return subprocess.run(["bash", "-c", command, TUBECTL], check=False, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              env={"TUBED_SERVER": server, "PATH": "/usr/bin:/bin"}).returncode

    def test_what_is_printed_never_goes_to_the_server(self):
        for server in self.servers():
            client = self.client(server)
            other = client.put(b"other")
            client.ask("use x")
            job = client.put(b"delete %d\r\n" % other)
            self.assertEqual(self.shell(server, 'exec "$0" reserve -t x --delete >&-'), IO)
            self.assertEqual(self.shell(server, 'exec "$0" reserve -t x --delete <&- >&- 2>&-'), IO)
            for one in (job, other):
                client.send(b"peek %d\r\n" % one)
                self.assertEqual(client.body()[0][0], "FOUND")


if __name__ == "__main__":
    unittest.main()
