"""load.py ADDRESS TUBES: changes the tubes bulk-00000, bulk-00001, … each second, until it is
ended. It puts a job into each tube, removes one from each in the next second, and so on.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
from harness import Client  # noqa: E402


def main():
    client = Client(sys.argv[1])
    names = [b"bulk-%05d" % tube for tube in range(int(sys.argv[2]))]
    rounds = [b"".join(b"put-in-tube %s 5 0 60 1\r\nx\r\n" % name for name in names),
              b"".join(b"flush-tube %s ready 1\r\n" % name for name in names)]
    moment = time.monotonic()
    while True:
        for commands in rounds:
            client.pump(commands, len(names))
            moment += 1
            time.sleep(max(0, moment - time.monotonic()))


if __name__ == "__main__":
    main()
