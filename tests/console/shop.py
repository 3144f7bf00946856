"""shop.py ADDRESS: a shop's producers and workers, for the pictures of the console. Runs until it
is ended.

Each tube has a varying rate of puts, and workers that take a bounded number of jobs each round and
delete them in the next. The workers of `webhooks` bury some jobs; the workers of `payments` stop
taking jobs after a while, but stay connected: the stuck tube of the pictures.
"""

import json
import math
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
from harness import Client  # noqa: E402

ROUND = 0.25
STUCK_AFTER = 130

# Name, puts per second, jobs that all workers take per second, connections of workers.
TUBES = [
    ("mail", 120, 150, 6), ("mail.digest", 2, 4, 1), ("resize", 60, 72, 4), ("thumbnails", 45, 60, 3),
    ("transcode", 3, 3.2, 2), ("invoices", 9, 20, 2), ("payments", 8, 30, 4), ("webhooks", 35, 60, 4),
    ("search-index", 80, 110, 3), ("exports", 0.5, 2, 1), ("sms", 14, 30, 2), ("push", 70, 90, 3),
    ("geocode", 6, 12, 1), ("import.csv", 4, 8, 1), ("import.api", 18, 30, 2), ("audit", 25, 60, 1),
    ("analytics", 150, 170, 2), ("cleanup", 0.3, 2, 1), ("refunds", 0.4, 2, 1), ("fraud-check", 8, 24, 2),
    ("stock", 22, 40, 2), ("labels", 7, 15, 1), ("reviews", 3, 8, 1), ("newsletter", 0, 5, 1),
]


def body(tube, number):
    if tube == "webhooks":
        return json.dumps({
            "event": random.choice(["order.paid", "order.shipped", "customer.created"]),
            "url": f"https://hooks.example.org/{number % 7}", "order": 48000 + number, "attempt": 3,
            "customer": {"id": 9000 + number % 400, "country": random.choice(["DE", "FR", "NL", "SE"])},
            "lines": [{"sku": f"TB-{number % 90:03}", "count": 1 + number % 3}]}).encode()
    return json.dumps({"id": number, "to": f"user{number % 900}@example.org",
                       "template": "shipped"}).encode()


class Tube:
    def __init__(self, address, row):
        self.name, self.puts, self.takes, workers = row
        self.address = address
        self.workers = [self.worker() for _ in range(workers)]
        self.owed_puts = self.owed_takes = 0
        self.number = 0
        self.held = [[] for _ in self.workers]

    def worker(self):
        client = Client(self.address)
        assert client.ask(f"watch {self.name}") == "WATCHING 2"
        assert client.ask("ignore default") == "WATCHING 1"
        return client

    def produce(self, client, elapsed, phase):
        swing = 1 + 0.45 * math.sin(2 * math.pi * (elapsed / 190 + phase)) + 0.25 * random.random()
        self.owed_puts += self.puts * swing * ROUND
        count = int(self.owed_puts)
        self.owed_puts -= count
        commands = []
        for _ in range(count):
            self.number += 1
            data = body(self.name, self.number)
            delay = random.randint(1, 60) if random.random() < 0.02 else 0
            commands.append(b"put-in-tube %s %d %d 120 %d\r\n%s\r\n" % (
                self.name.encode(), random.choice([100, 1024, 1024, 1024]), delay, len(data), data))
        if commands:
            client.pump(b"".join(commands), count)

    def work(self, elapsed):
        if self.name == "payments" and elapsed > STUCK_AFTER:
            for client, held in zip(self.workers, self.held):
                self.finish(client, held)
            return
        self.owed_takes += self.takes * ROUND
        count = int(self.owed_takes)
        self.owed_takes -= count
        shares = [count // len(self.workers) + (i < count % len(self.workers))
                  for i in range(len(self.workers))]
        for client, held, share in zip(self.workers, self.held, shares):
            self.finish(client, held)
            client.send(b"reserve-with-timeout 0\r\n" * share)
            for _ in range(share):
                line = client.line()
                if line.startswith("RESERVED"):
                    client.read(int(line.split()[2]) + 2)
                    held.append(int(line.split()[1]))

    def finish(self, client, held):
        if held:
            client.pump(b"".join(b"bury %d 1024\r\n" % job if self.buries() else b"delete %d\r\n" % job
                                 for job in held), len(held))
        held.clear()

    def buries(self):
        return self.name == "webhooks" and random.random() < 0.012


def main():
    random.seed(7)
    address = sys.argv[1]
    producer = Client(address)
    tubes = [Tube(address, row) for row in TUBES]
    begin = moment = time.monotonic()
    while True:
        elapsed = moment - begin
        for i, tube in enumerate(tubes):
            tube.produce(producer, elapsed, i / 5)
            tube.work(elapsed)
        moment = max(moment + ROUND, time.monotonic())
        time.sleep(max(0, moment - time.monotonic()))


if __name__ == "__main__":
    main()
