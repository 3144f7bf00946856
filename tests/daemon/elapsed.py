"""Time that has passed since an event in the server, as an interval: the test may be slow."""

import time


class Elapsed:
    """The seconds since an event that happens within a `with` block, such as the reply to a put.

    The event and the moment at which the server computes a figure are known only up to the time that
    the test takes, so all checks compare with an interval. Figures are whole seconds, hence 1."""

    def __enter__(self):
        self.earliest = time.monotonic()
        return self

    def __exit__(self, *_):
        self.latest = time.monotonic()

    def check_left(self, test, requested, figure):
        """Checks the time left, figure(), of a time that began with the event."""
        least = time.monotonic() - self.latest
        left = figure()
        most = time.monotonic() - self.earliest
        test.assertGreaterEqual(left, requested - most - 1)
        test.assertLessEqual(left, requested - least + 1)

    def check_age(self, test, figure):
        """Checks the time since the event, figure()."""
        self.check_left(test, 0, lambda: -figure())
