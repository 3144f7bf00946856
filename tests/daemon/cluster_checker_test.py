"""Histories that each violate one rule of the checker, and correct histories.

`History` makes a checker's events from one line for each exchange, with times in seconds.
"""

import unittest

from cluster_checker import Checker, body_of

TTR = 100


class History:
    def __init__(self, grace=10.0):
        self.checker = Checker(grace)
        self.now = 1000.0
        self.epoch = 1
        self.connections = {}
        self.number = 0

    def after(self, seconds):
        self.now += seconds

    def pass_on(self, *clients):
        for client in clients:
            self.checker.connected(self.connection(client), self.epoch, f"leader-{self.epoch}",
                                   passed_on=True)

    def exchange(self, client=None):
        """An exchange that takes 1 ms. Returns when its command was sent; the reply arrives now."""
        sent = self.now + 0.001
        self.now += 0.002
        self.checker.reply(self.epoch, sent, self.connections.get(client))
        return sent

    def connection(self, client):
        if client not in self.connections:
            self.number += 1
            self.connections[client] = self.number
        return self.connections[client]

    def lose_connections(self, given_up=False):
        for connection in self.connections.values():
            self.checker.connection_ended(connection, given_up)
        self.connections = {}

    def change_leader(self, seconds=0.5):
        self.lose_connections()
        self.after(seconds)
        self.epoch += 1

    def new_put(self):
        return self.checker.new_put(20, "tube", 7, TTR)

    def put(self, job_id, serial=None):
        serial = serial or self.new_put()
        newest = self.checker.put_sent(serial)
        self.exchange()
        self.checker.inserted(serial, job_id, newest, self.now)
        return serial

    def reserve(self, client, job_id, serial, body=None):
        sent = self.exchange(client)
        self.checker.reserved(client, self.connection(client), self.epoch, job_id,
                              body or body_of(serial, 20), sent, self.now)

    def end(self, kind, client, job_id, done=True):
        end = self.checker.end_sent(kind, client, self.connection(client), job_id,
                                    self.exchange(client))
        self.checker.end_reply(end, self.epoch, done, self.now)

    def unanswered(self, kind, client, job_id):
        self.checker.end_sent(kind, client, self.connection(client), job_id, self.now)


class CheckerTest(unittest.TestCase):
    def setUp(self):
        self.history = History()
        self.checker = self.history.checker

    def assert_found(self, text):
        self.assertEqual(self.checker.problem_count, 1, self.checker.problems)
        self.assertIn(text, self.checker.problems[0])

    def assert_right(self):
        self.assertEqual(self.checker.problems, [])

    def one_job(self, *holders):
        serial = self.history.put(1)
        for client in holders:
            self.history.reserve(client, 1, serial)
        return serial

    # --- Never lost, never back

    def test_lost(self):
        self.one_job()
        self.checker.check_jobs({})
        self.assert_found("job 1 is lost")

    def test_lost_although_a_delete_was_answered_not_found(self):
        self.one_job(1)
        self.history.end("release", 1, 1)
        self.history.end("delete", 2, 1, done=False)
        self.checker.check_jobs({})
        self.assert_found("job 1 is lost")

    def test_not_lost(self):
        serial = self.one_job(1)
        self.checker.check_jobs({1: body_of(serial, 20)})
        self.history.unanswered("delete", 1, 1)
        self.checker.check_jobs({})
        self.checker.check_jobs({1: body_of(serial, 20)})
        self.assert_right()

    def test_an_unanswered_put_may_be_lost(self):
        serial = self.history.new_put()
        self.checker.put_sent(serial)
        self.checker.check_jobs({})
        self.checker.check_jobs({5: body_of(serial, 20)})
        self.assert_right()

    def test_found_no_more(self):
        self.one_job()
        self.checker.not_found(1, self.history.now + 0.1)
        self.assert_found("was not found later")

    def test_back_in_a_reserve(self):
        serial = self.one_job(1)
        self.history.end("delete", 1, 1)
        self.history.reserve(2, 1, serial)
        self.assert_found("job 1 is back")

    def test_back_in_a_peek(self):
        serial = self.one_job(1)
        self.history.end("delete", 1, 1)
        self.checker.found(1, body_of(serial, 20), self.history.now + 0.1)
        self.assert_found("job 1 is back")

    def test_back_at_the_end(self):
        serial = self.one_job(1)
        self.history.end("delete", 1, 1)
        self.checker.check_jobs({1: body_of(serial, 20)})
        self.assert_found("job 1 is back")

    def test_deleted_twice(self):
        self.one_job(1)
        self.history.end("delete", 1, 1)
        self.history.end("delete", 1, 1)
        self.assert_found("was deleted before its delete was sent")

    # --- One holder

    def test_two_holders(self):
        self.one_job(1, 2)
        self.assert_found("two holders")

    def test_two_holders_after_a_touch(self):
        serial = self.one_job(1)
        self.history.after(80)
        self.history.end("touch", 1, 1)
        self.history.after(80)
        self.history.reserve(2, 1, serial)
        self.assert_found("two holders")

    def test_two_holders_after_a_change_of_the_leader(self):
        serial = self.one_job(1)
        self.history.change_leader()
        self.history.after(5)
        self.history.reserve(2, 1, serial)
        self.assert_found("two holders")

    def test_a_job_is_given_on_after_the_end_of_its_reservation(self):
        for kind in ("release", "bury", "delete"):
            serial = self.history.put(self.checker.newest_id + 1)
            job_id = self.checker.newest_id
            self.history.reserve(1, job_id, serial)
            self.history.unanswered(kind, 1, job_id)
            self.history.reserve(2, job_id, serial)
        self.assert_right()

    def test_a_job_is_given_on_after_the_ttr(self):
        serial = self.one_job(1)
        self.history.after(TTR)
        self.history.reserve(2, 1, serial)
        self.assert_right()

    def test_a_job_is_given_on_after_the_connection(self):
        serial = self.one_job(1)
        self.history.lose_connections(given_up=True)
        self.history.reserve(2, 1, serial)
        self.assert_right()

    def test_a_job_is_given_on_after_the_grace(self):
        serial = self.one_job(1)
        self.history.change_leader()
        self.history.after(10)
        self.history.reserve(2, 1, serial)
        self.assert_right()

    def test_the_grace_counts_from_the_last_answer_of_the_former_leader(self):
        serial = self.one_job(1)
        self.history.after(50)
        self.history.put(2)
        self.history.change_leader()
        self.history.reserve(2, 1, serial)
        self.assert_found("two holders")

    def test_a_touch_takes_a_job_over(self):
        serial = self.one_job(1)
        self.history.change_leader()
        self.history.end("touch", 1, 1)
        self.history.after(20)
        self.assertEqual(self.checker.counts["held_over"], 1)
        self.history.reserve(2, 1, serial)
        self.assert_found("two holders")

    def test_ended_by_a_client_that_does_not_hold_it(self):
        serial = self.one_job(1)
        self.history.end("release", 1, 1)
        self.history.reserve(2, 1, serial)
        self.history.end("delete", 1, 1)
        self.assert_found("is held by client 2, and the delete of client 1 succeeded")

    # --- The holder's right

    def test_the_holder_is_refused(self):
        for kind in ("delete", "release", "bury", "touch"):
            with self.subTest(kind):
                self.setUp()
                self.one_job(1)
                self.history.end(kind, 1, 1, done=False)
                self.assert_found(f"its {kind} was answered NOT_FOUND")

    def test_the_holder_is_refused_after_a_change_of_the_leader(self):
        self.one_job(1)
        self.history.change_leader()
        self.history.after(5)
        self.history.end("delete", 1, 1, done=False)
        self.assert_found("its delete was answered NOT_FOUND")

    def test_the_holder_may_be_refused(self):
        self.one_job(1)
        self.history.after(TTR)
        self.history.end("delete", 1, 1, done=False)
        serial = self.history.put(2)
        self.history.reserve(1, 2, serial)
        self.history.change_leader()
        self.history.after(10)
        self.history.end("delete", 1, 2, done=False)
        serial = self.history.put(3)
        self.history.reserve(1, 3, serial)
        self.history.unanswered("delete", 1, 3)
        self.history.change_leader()
        self.history.end("delete", 1, 3, done=False)
        serial = self.history.put(4)
        self.history.reserve(1, 4, serial)
        self.history.lose_connections(given_up=True)
        self.history.end("touch", 1, 4, done=False)
        self.assert_right()

    # --- Connections that are passed on

    def test_two_holders_whose_connections_are_passed_on(self):
        self.history.pass_on(1, 2)
        serial = self.one_job(1, 2)
        self.assert_right()  # the leader may know of the end of the first connection
        self.history.end("touch", 1, 1, done=False)
        self.assertIn("has two holders", self.checker.problems[0])
        self.assertEqual(self.checker.counts["suspicions"], 1)
        self.assertTrue(serial)

    def test_a_command_that_was_sent_before_the_second_holder_is_answered_later(self):
        self.history.pass_on(1)
        serial = self.one_job(1)
        sent = self.history.now
        self.history.after(1)
        self.history.reserve(2, 1, serial)
        self.checker.reply(1, sent, self.history.connection(1))
        self.assert_right()
        self.history.lose_connections()
        self.assertFalse(self.checker.suspicions)

    def test_a_job_of_a_connection_that_is_passed_on_is_ended_by_another_client(self):
        self.history.pass_on(1)
        self.one_job(1)
        self.history.end("delete", 2, 1)
        self.assert_right()
        self.history.exchange(1)
        self.assert_found("is held by client 1, and the delete of client 2 succeeded")

    def test_the_holder_is_refused_on_a_connection_that_is_passed_on(self):
        self.history.pass_on(1)
        self.one_job(1)
        self.history.end("delete", 1, 1, done=False)
        self.assert_found("its delete was answered NOT_FOUND")

    def test_nothing_is_said_of_reservations_of_connections_that_were_passed_on(self):
        self.history.pass_on(1)
        serial = self.one_job(1)
        self.history.change_leader()
        self.history.reserve(2, 1, serial)
        self.assert_right()

    def test_a_touch_on_a_direct_connection_makes_the_reservation_direct(self):
        self.history.pass_on(1)
        serial = self.one_job(1)
        self.history.change_leader()
        self.history.end("touch", 1, 1)
        self.history.reserve(2, 1, serial)
        self.assert_found("two holders")

    def test_another_client_may_end_a_reservation_after_a_change_of_the_leader(self):
        for done in (True, None):
            serial = self.history.put(self.checker.newest_id + 1)
            job_id = self.checker.newest_id
            self.history.reserve(1, job_id, serial)
            self.history.change_leader()
            if done:
                self.history.end("release", 2, job_id)
            else:
                self.history.unanswered("release", 2, job_id)
            self.history.reserve(3, job_id, serial)
        self.assert_right()

    def test_a_client_that_was_refused_has_not_ended_a_reservation(self):
        serial = self.one_job(1)
        self.history.end("release", 2, 1, done=False)
        self.history.change_leader()
        self.history.reserve(3, 1, serial)
        self.assert_found("two holders")

    def test_two_leaders_of_a_term(self):
        self.history.pass_on(1)
        self.checker.connected(99, 1, "leader-1", passed_on=False)
        self.assert_right()
        self.checker.connected(100, 1, "leader-2", passed_on=False)
        self.assert_found("leader-1 and leader-2 serve clients in term 1")

    # --- Whole, unique, once

    def test_another_body(self):
        serial = self.history.put(1)
        self.history.reserve(1, 1, serial, body_of(serial, 19) + b"!")
        self.assert_found("has the body")

    def test_the_body_of_another_job(self):
        self.history.put(1)
        other = self.history.put(2)
        self.history.reserve(1, 1, other)
        self.assertIn("job 1 is body 1 and body 2", self.checker.problems[0])

    def test_a_body_that_was_never_put(self):
        self.history.reserve(1, 1, 77)
        self.assert_found("was never put")

    def test_other_arguments(self):
        self.history.put(1)
        stats = {"tube": "tube", "pri": 7, "ttr": TTR, "timeouts": 0, "releases": 2, "buries": 0,
                 "kicks": 0}
        for number, (key, value) in enumerate((("tube", "x"), ("pri", 8), ("ttr", 9))):
            self.checker.stats_job(1, stats | {key: value}, self.history.exchange(),
                                   self.history.now)
            self.assertIn(f"has {key} {value}", self.checker.problems[number])

    def test_counters_that_shrink(self):
        self.history.put(1)
        stats = {"tube": "tube", "pri": 7, "ttr": TTR, "timeouts": 0, "releases": 2, "buries": 0,
                 "kicks": 0}
        for releases in (2, 3, 2):
            self.checker.stats_job(1, stats | {"releases": releases}, self.history.exchange(),
                                   self.history.now)
        self.assert_found("counters")

    def test_an_id_twice(self):
        self.history.put(1)
        serial = self.history.new_put()
        self.checker.put_sent(serial)
        self.checker.inserted(serial, 1, 0, self.history.now)
        self.assert_found("is the id of two puts")

    def test_ids_that_do_not_rise(self):
        self.history.put(5)
        self.history.put(4)
        self.assert_found("was put after job 5 was acknowledged")

    def test_doubled(self):
        serial = self.one_job()
        self.history.reserve(1, 2, serial)
        self.assert_found("is doubled")

    def test_doubled_after_its_end(self):
        serial = self.one_job(1)
        self.history.end("delete", 1, 1)
        self.history.reserve(1, 2, serial)
        self.assert_found("is doubled")

    def test_a_put_that_was_sent_again_may_be_two_jobs(self):
        serial = self.history.new_put()
        self.checker.put_sent(serial)
        self.history.put(2, serial)
        self.history.reserve(1, 1, serial)
        self.history.end("delete", 1, 1)
        self.assert_right()
        self.assertEqual((self.checker.counts["retries"], self.checker.counts["doubled"]), (1, 1))
        self.history.reserve(1, 3, serial)
        self.assert_found("is doubled")


if __name__ == "__main__":
    unittest.main()
