"""`tubectl cluster` and `tubectl wait-cluster` on a fake node: HTTP on a unix socket.

  TUBED_PROGRAM=build/dev/src/tubed TUBECTL_PROGRAM=build/dev/src/tubectl/tubectl \\
    python3 tests/tubectl/cluster_test.py
"""

import json
import os
import socket
import subprocess
import unittest

from fake_admin import FakeAdmin, healthy_state, member
from programs import (DONE, FAILURE, NOT_ALLOWED, SECONDS, TIMED_OUT, TUBECTL, UNAVAILABLE, USAGE,
                      TubectlTest)

NO_SERVER = "127.0.0.1:1"  # not used by tubectl cluster
NOBODY = 65534


def raw_answer(body, head="HTTP/1.1 200 OK"):
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class ClusterTest(TubectlTest):
    def node(self, **state):
        node = FakeAdmin(self.directory / f"admin-{len(list(self.directory.iterdir()))}")
        self.addCleanup(node.close)
        node.state |= state
        return node

    def run_on(self, node, *arguments):
        """Runs tubectl on the node. Returns (exit code, stdout, stderr)."""
        return self.run_tubectl(NO_SERVER, *arguments, environment={"TUBED_ADMIN": node.address})

    def done(self, node, *arguments):
        code, output, errors = self.run_on(node, *arguments)
        self.assertEqual((code, errors), (DONE, ""), (arguments, output))
        return output

    def failed(self, code, node, *arguments):
        """Returns the single line on stderr, without its beginning and line end."""
        got, output, errors = self.run_on(node, *arguments)
        self.assertEqual((got, output), (code, ""), (arguments, errors))
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertTrue(errors.startswith("tubectl: "), errors)
        return errors.removeprefix("tubectl: ").removesuffix("\n")


class Status(ClusterTest):
    def test_a_healthy_cluster(self):
        self.assertEqual(self.done(self.node(), "cluster", "status"), (
            "cluster 00000000c1a57e4d  this node a (leader)  leader a  term 3  committed 100  "
            "lease 250 ms  level 1\n"
            "name  address         role    match  behind  silent  level   lag\n"
            "a     10.0.0.1:11302  leader    100       0       -      2  0 ms\n"
            "b     10.0.0.2:11302  voter     100       0   10 ms      2  0 ms\n"
            "c     10.0.0.3:11302  voter     100       0   10 ms      2  0 ms\n"))

    def test_warnings(self):
        node = self.node(raft_log_bytes=600, raft_log_limit=1000)
        node.state["members"][1]["silent_ms"] = 4321
        output = self.done(node, "cluster", "status")
        self.assertIn("warning: b has been silent for 4.3 s\n", output)
        self.assertIn("warning: the raft log has 600 bytes, more than half of its bound of 1000\n",
                      output)
        self.assertNotIn("\x1b", output)
        del node.state["members"][2]
        self.assertIn("warning: two voters: the loss of either stops the cluster",
                      self.done(node, "cluster", "status"))
        node.state["leader"] = None
        self.assertIn("warning: no leader is known: clients are not served",
                      self.done(node, "cluster", "status"))
        node.state |= {"role": "waiting", "members": []}
        self.assertIn("warning: this node has no state",
                      self.done(node, "cluster", "status"))

    def test_a_standby_is_looked_at_twice(self):
        node = self.node()
        node.state["members"].append(member("d", 4, votes=False, match=40))
        self.assertNotIn("advance", self.done(node, "cluster", "status"))
        self.assertEqual(len(node.requests), 2)

        def stay(state):
            state["members"][3] |= {"votes": False, "match": 40}
        node.on_look = stay
        self.assertIn("warning: the standby d has not advanced for 500 ms: it lacks 60 entries",
                      self.done(node, "cluster", "status"))
        # With --json the first answer is printed.
        before = len(node.requests)
        self.done(node, "cluster", "status", "--json")
        self.assertEqual(len(node.requests), before + 1)

    def test_json_is_the_document_as_it_is(self):
        node = self.node()
        text = '{"name": "a",  "role":"leader", "new":{"deep":[1.50]}, "members":[]}'
        for end in ("", "\n"):
            node.override["/cluster"] = raw_answer(text + end)
            self.assertEqual(self.done(node, "cluster", "status", "--json"), text + "\n")
        del node.override["/cluster"]
        self.assertEqual(json.loads(self.done(node, "cluster", "status", "--json")),
                         healthy_state())

    def test_the_socket(self):
        node = self.node()
        for words in (("--admin", node.address), ("--admin", str(node.path)),
                      (f"--admin={node.address}",)):
            self.assertIn("this node a", self.tubectl(NO_SERVER, "cluster", "status", *words))
        self.assertEqual({request[:2] for request in node.requests}, {("GET", "/cluster")})
        for address, reason in (("127.0.0.1:11300", "is not a unix socket"),
                                ("host", "is not a unix socket"), ("unix:", "no path")):
            self.assertIn(reason, self.refused(USAGE, NO_SERVER, "cluster", "status", "--admin",
                                               address))

    def test_text_of_the_node_on_a_terminal(self):
        node = self.node(name="a\x1b[2J\r\n")
        shown = self.on_terminal(NO_SERVER, "cluster", "status",
                                 environment={"TUBED_ADMIN": node.address, "NO_COLOR": "1"})
        self.assertIn(b"this node a\\x1b[2J\\r\\n (leader)", shown)
        self.assertNotIn(b"\x1b", shown)
        # JSON escapes all control characters except one.
        text = json.dumps(node.state | {"name": "a\x7f"}, ensure_ascii=False)
        node.override["/cluster"] = raw_answer(text)
        shown = self.on_terminal(NO_SERVER, "cluster", "status", "--json",
                                 environment={"TUBED_ADMIN": node.address})
        self.assertIn(b'"name": "a\\x7f"', shown)
        self.assertEqual(self.done(node, "cluster", "status", "--json"), text + "\n")

    def test_colours_on_a_terminal(self):
        node = self.node(leader=None)
        shown = self.on_terminal(NO_SERVER, "cluster", "status",
                                 environment={"TUBED_ADMIN": node.address})
        self.assertIn(b"\x1b[33mwarning:\x1b[0m no leader", shown)


class UpgradeCheck(ClusterTest):
    def test_a_node_may_be_restarted(self):
        node = self.node()
        for number, level in enumerate((1, 5, 1)):
            node.state["members"][number]["level"] = level
        self.assertEqual(self.done(node, "cluster", "upgrade-check"), (
            "feature level 1, leader a\n"
            "name  role    behind  silent  level\n"
            "a     leader       0       -      1\n"
            "b     voter        0   10 ms      5\n"
            "c     voter        0   10 ms      1\n"
            "the level stays 1: a knows no higher level than 1; c knows no higher level than 1\n"
            "to be upgraded: c, then the leader, a, last\n"
            "c may be restarted now\n"))
        facts = json.loads(self.done(node, "cluster", "upgrade-check", "--json"))
        self.assertEqual((facts["may_restart"], facts["reasons"], facts["next"], facts["order"]),
                         (True, [], "c", ["c", "a"]))
        self.assertEqual({request[:2] for request in node.requests}, {("GET", "/cluster")})

    def test_no_node_may_be_restarted(self):
        node = self.node()
        node.state["members"][1] |= {"silent_ms": 65000, "failure": "Connection refused"}
        why = ("cluster upgrade-check: no node may be restarted now: b has been silent for 1 min: "
               "Connection refused; 2 of 3 voters are ready, and one more failure stops the cluster")
        code, output, errors = self.run_on(node, "cluster", "upgrade-check")
        self.assertEqual((code, errors), (FAILURE, f"tubectl: {why}\n"))
        self.assertIn("the level stays 1: b has been silent for 1 min: Connection refused\n", output)
        self.assertNotIn("may be restarted", output)
        code, output, errors = self.run_on(node, "cluster", "upgrade-check", "--json")
        self.assertEqual((code, errors), (FAILURE, f"tubectl: {why}\n"))
        facts = json.loads(output)
        self.assertEqual((facts["may_restart"], facts["next"]), (False, None))
        self.assertEqual("; ".join(facts["reasons"]), why.split(": ", 2)[2])

    def test_a_node_that_does_not_lead(self):
        node = self.node(name="b", role="follower", lease_ms=None)
        code, output, errors = self.run_on(node, "cluster", "upgrade-check")
        self.assertEqual(code, FAILURE)
        self.assertIn("only the leader, a, knows how far the members are: run it there", errors)
        self.assertIn("c     voter", output)


class Mistakes(ClusterTest):
    def test_words(self):
        node = self.node()
        for words, reason in (
                (("add",), "NAME is missing: that of the node"),
                (("add", "b"), "ADDRESS is missing: that of the node"),
                (("remove",), "NAME is missing: that of the node"),
                (("status", "b"), "there is an argument too many: b"),
                (("remove", "b", "10.0.0.2"), "there is an argument too many: 10.0.0.2"),
                (("transfer", "b", "10.0.0.2"), "there is an argument too many: 10.0.0.2"),
                (("status", "--no-wait"), "--no-wait and --timeout are for add, promote, "
                                          "remove, set-address and transfer"),
                (("status", "--timeout", "1"), "--no-wait and --timeout are for add, promote, "
                                               "remove, set-address and transfer"),
                (("set-address",), "NAME is missing: that of the node"),
                (("set-address", "b"), "ADDRESS is missing: that of the node"),
                (("promote",), "NAME is missing: that of the node"),
                (("promote", "b", "10.0.0.2"), "there is an argument too many: 10.0.0.2"),
                (("promote", "b", "--standby"), "--standby is for add"),
                (("remove", "b", "--watch"), "--watch is for status"),
                (("secret", "b"), "there is an argument too many: b"),
                (("secret", "--watch"), "--watch is for status"),
                (("upgrade-check", "b"), "there is an argument too many: b"),
                (("upgrade-check", "--watch"), "--watch is for status"),
                (("upgrade-check", "--timeout", "1"), "--no-wait and --timeout are for add, promote, "
                                                      "remove, set-address and transfer")):
            with self.subTest(words=words):
                self.assertEqual(self.failed(USAGE, node, "cluster", *words),
                                 f"{reason}; try tubectl cluster --help")
        self.assertIn("ACTION is missing", self.failed(USAGE, node, "cluster"))
        self.assertIn("ACTION: evict not in", self.failed(USAGE, node, "cluster", "evict"))
        self.assertIn("--no-wait excludes --timeout",
                      self.failed(USAGE, node, "cluster", "remove", "b", "--no-wait", "--timeout",
                                  "1"))
        self.assertEqual(node.requests, [])

    def test_secrets(self):
        node = self.node()
        secrets = [self.done(node, "cluster", "secret") for _ in range(2)]
        self.assertNotEqual(*secrets)
        for secret in secrets:
            self.assertRegex(secret, r"^tbc_[A-Za-z0-9_-]{43}\n$")
        self.assertRegex(json.loads(self.done(node, "cluster", "secret", "--json"))["secret"],
                         "^tbc_.{43}$")
        self.assertEqual(node.requests, [])

    def test_names(self):
        node = self.node()
        for name in ("", "x" * 33, "a b", "a@b", "a:b", "ä", "a/b", "a\n"):
            with self.subTest(name=name):
                self.assertIn("is no name of a node: it has 1 to 32 letters, digits, and . _ -",
                              self.failed(USAGE, node, "cluster", "remove", name))
        self.assertEqual(node.requests, [])
        for name in ("x" * 32, "A.b_c-9", "."):
            self.done(node, "cluster", "add", "--no-wait", name, "10.0.0.9")

    def test_addresses(self):
        node = self.node()
        for number, (text, address) in enumerate((
                ("10.0.0.9", "10.0.0.9:11302"), ("10.0.0.9:1", "10.0.0.9:1"),
                ("[fd00::9]", "[fd00::9]:11302"), ("[fd00::9]:65535", "[fd00::9]:65535"),
                ("B-1.Tubed.", "b-1.tubed:11302"), ("b:1", "b:1"), ("localhost", "localhost:11302"))):
            self.done(node, "cluster", "add", "--no-wait", f"n{number}", text)
            self.assertEqual(node.state["members"][-1]["address"], address)
        node.requests.clear()
        for text in ("", "host:", "host:0", "host:x", "a_b:11302", "10.0.0", ":11302",
                     "10.0.0.9:0", "10.0.0.9:65536", "10.0.0.9:", "10.0.0.9:x", "fd00::9",
                     "[fd00::9", "[fd00::9]11302", "unix:/x", "/x", "beanstalk://10.0.0.9:1",
                     "[10.0.0.9]:1"):
            with self.subTest(text=text):
                self.assertIn("is no address of a node: it is HOST:PORT with a numeric HOST",
                              self.failed(USAGE, node, "cluster", "add", "d", text))
        self.assertEqual(node.requests, [])


class Answers(ClusterTest):
    """Answers of all kinds, and no answer."""

    CALLS = (("cluster", "status"), ("cluster", "status", "--json"), ("cluster", "remove", "b"),
             ("cluster", "upgrade-check"), ("wait-cluster",))

    def test_nothing_listens(self):
        node = self.node()
        node.stop_listening()
        for words in self.CALLS:
            self.assertRegex(self.failed(UNAVAILABLE, node, *words),
                             f"^{words[0]}.*: cannot connect to {node.address}: No such file or "
                             "directory; does tubed run, and is this its setting cluster.admin[?]$")
        with socket.socket(socket.AF_UNIX) as left_over:
            left_over.bind(str(node.path))
        self.assertIn("Connection refused; does tubed run",
                      self.failed(UNAVAILABLE, node, "cluster", "status"))

    def test_permission_denied(self):
        node = self.node()
        node.path.chmod(0)
        options = {}
        if os.geteuid() == 0:
            options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        try:
            done = subprocess.run([TUBECTL, "cluster", "status", "--admin", node.address],
                                  capture_output=True, text=True, timeout=SECONDS, check=False,
                                  **options)
        except PermissionError:
            self.skipTest("another user cannot run the program")
        self.assertEqual(done.returncode, NOT_ALLOWED)
        self.assertEqual(done.stderr,
                         f"tubectl: cluster status: cannot connect to {node.address}: Permission "
                         "denied; run this as root or as a user who may write to the socket\n")

    def test_refusals(self):
        node = self.node()
        for status, document, reason in (
                (400, {"error": "the name is too long"}, "the name is too long (400)"),
                (404, {"error": "there is no node b"}, "there is no node b (404)"),
                (405, {}, "the server answered with the status 405"),
                (409, {"error": "a change is under way"}, "a change is under way (409)"),
                (409, {"error": "two\nlines\x1b[2J"}, "two\\nlines\\x1b[2J (409)"),
                (409, {"error": 7}, "the server answered with the status 409"),
                (409, {"error": ""}, "the server answered with the status 409"),
                (500, ["no object"], "the server answered with the status 500"),
                (302, {}, "the server answered with the status 302")):
            with self.subTest(status=status, document=document):
                node.override["/cluster/remove"] = (status, document)
                self.assertEqual(self.failed(FAILURE, node, "cluster", "remove", "b"),
                                 f"cluster remove: {reason}")
                node.override["/cluster"] = (status, document)
                for words in self.CALLS:
                    self.assertTrue(self.failed(FAILURE, node, *words).endswith(": " + reason))
                del node.override["/cluster"]

    def test_a_change_waits_for_a_leader_that_can_take_it(self):
        node = self.node()
        refusals = [(503, {"error": "no leader is known"})] * 2

        def refuse():
            if len(refusals) == 1:
                del node.override["/cluster/add"]
            return refusals.pop()
        node.override["/cluster/add"] = refuse
        self.assertEqual(self.done(node, "cluster", "add", "d", "10.0.0.4"), "d votes\n")
        self.assertEqual([one[1] for one in node.requests].count("/cluster/add"), 3)
        node.override["/cluster/remove"] = (503, {"error": "no leader is known"})
        self.assertEqual(
            self.failed(TIMED_OUT, node, "cluster", "remove", "--timeout", "0.15", "d"),
            "cluster remove: after 0.15 s: no leader is known (503)")
        node.override["/cluster/transfer"] = (503, {"error": "no leader is known"})
        self.assertEqual(self.failed(FAILURE, node, "cluster", "transfer"),
                         "cluster transfer: no leader is known (503)")
        node.override["/cluster"] = (503, {"error": "starting"})
        for words in self.CALLS:
            self.assertTrue(self.failed(FAILURE, node, *words).endswith(": starting (503)"))

    def test_a_server_in_no_cluster(self):
        node = self.node()
        for answer in ((404, {}), raw_answer("Not Found", "HTTP/1.1 404 Not Found")):
            node.override["/cluster"] = answer
            for words in self.CALLS:
                self.assertTrue(self.failed(FAILURE, node, *words).endswith(
                    ": the server has no /cluster: it is in no cluster (404)"))

    def test_answers_that_are_none(self):
        node = self.node()
        huge = b"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n"
        endless = b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (1 << 21)
        for answer, reason in (
                (b"", "the server closed the connection before its answer"),
                (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "before its answer"),
                (b"hello\r\n", "the answer is not HTTP: it has no status line"),
                (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5000, "the head of the answer is too "
                                                               "large"),
                (huge, "the answer is larger than 1048576 bytes"),
                (endless, "the answer is not HTTP: it has no Content-Length"),
                (raw_answer(""), "the answer is not the state of a cluster"),
                (raw_answer("[" * 100000), "the answer is not the state of a cluster"),
                (raw_answer('{"name":"a"}'), "the answer is not the state of a cluster")):
            with self.subTest(answer=answer[:60]):
                node.override["/cluster"] = answer
                for words in self.CALLS:
                    self.assertTrue(self.failed(UNAVAILABLE, node, *words).endswith(reason))

    def test_a_change_without_an_answer(self):
        node = self.node()
        node.override["/cluster/remove"] = b""
        self.assertEqual(
            self.failed(UNAVAILABLE, node, "cluster", "remove", "b"),
            f"cluster remove: {node.address}: the server closed the connection before its answer; "
            "tubectl cluster status shows whether the change was made")

    def test_a_node_that_becomes_silent(self):
        node = self.node()
        node.override["/cluster"] = None
        self.assertEqual(
            self.failed(UNAVAILABLE, node, "wait-cluster", "--timeout", "0"),
            f"wait-cluster: {node.address}: the server did not answer in time")


class Changes(ClusterTest):
    def test_adds_a_node_and_waits_until_it_votes(self):
        node = self.node()
        self.assertEqual(self.done(node, "cluster", "add", "d", "10.0.0.4"), "d votes\n")
        self.assertTrue(node.state["members"][-1]["votes"])
        self.assertEqual(node.requests[0][:2], ("GET", "/cluster"))
        self.assertEqual(node.requests[1][:2], ("POST", "/cluster/add"))
        self.assertEqual(json.loads(node.requests[1][2]), {"name": "d",
                                                           "address": "10.0.0.4:11302"})
        self.assertEqual({request[:2] for request in node.requests[2:]}, {("GET", "/cluster")})
        self.assertIn("d is a member already (409)",
                      self.failed(FAILURE, node, "cluster", "add", "d", "10.0.0.4"))

    def test_adds_a_standby_that_stays_and_promotes_it(self):
        node = self.node(committed=5000)
        for one in node.state["members"]:
            one["match"] = 5000
        self.assertEqual(self.done(node, "cluster", "add", "--standby", "d", "10.0.0.4"),
                         "d follows\n")
        self.assertEqual(node.requests[1][:2], ("POST", "/cluster/add-standby"))
        self.assertEqual(json.loads(node.requests[1][2]), {"name": "d",
                                                           "address": "10.0.0.4:11302"})
        self.assertRegex(self.done(node, "cluster", "status"),
                         r"(?m)^d +10.0.0.4:11302 +standby, stays +\d+ ")
        self.assertEqual(self.done(node, "wait-cluster"), "")
        self.assertFalse(node.state["members"][-1]["votes"])
        node.requests.clear()
        self.assertEqual(self.done(node, "cluster", "promote", "d"), "d votes\n")
        self.assertEqual(node.requests[1], ("POST", "/cluster/promote", '{"name":"d"}'))
        self.assertTrue(node.state["members"][-1]["votes"])
        self.assertEqual(self.done(node, "cluster", "promote", "d", "--json"),
                         '{"action":"promote","name":"d","done":true}\n')
        self.assertIn("there is no node x (404)",
                      self.failed(FAILURE, node, "cluster", "promote", "x"))

    def test_gives_a_member_another_address(self):
        node = self.node()
        node.state["members"][1]["reached_at"] = "10.0.0.9:11302"
        self.assertIn("warning: b is reached at 10.0.0.9:11302, and not at its address: "
                      "tubectl cluster set-address b 10.0.0.9:11302\n",
                      self.done(node, "cluster", "status"))
        node.requests.clear()
        self.assertEqual(self.done(node, "cluster", "set-address", "b", "10.0.0.9"),
                         "b has the address 10.0.0.9:11302\n")
        self.assertEqual(node.requests[1], ("POST", "/cluster/set-address",
                                            '{"name":"b","address":"10.0.0.9:11302"}'))
        self.assertEqual(self.done(node, "cluster", "set-address", "b", "B.example:1", "--json"),
                         '{"action":"set-address","name":"b","done":true}\n')
        self.assertEqual(node.state["members"][1]["address"], "b.example:1")
        self.assertEqual(
            self.done(node, "cluster", "set-address", "b", "10.0.0.9", "--no-wait"), "")
        self.assertIn("there is no node x (404)",
                      self.failed(FAILURE, node, "cluster", "set-address", "x", "10.0.0.9"))
        node.override["/cluster/set-address"] = 503, {"error": "no leader is known"}
        self.assertIn("after 1 s: no leader is known (503)",
                      self.failed(TIMED_OUT, node, "cluster", "set-address", "--timeout", "1",
                                  "b", "10.0.0.9"))

    def test_a_node_that_cannot_be_added_is_removed_again(self):
        node = self.node()

        def disconnect(state):
            for one in state["members"]:
                if one["name"] == "d":
                    one |= {"match": 0, "votes": False,
                            "failure": "it does not accept this node: it is another member"}

        node.on_look = disconnect
        error = self.failed(TIMED_OUT, node, "cluster", "add", "--timeout", "1", "d", "10.0.0.4")
        self.assertIn("after 1 s: d is a standby without a connection: it does not accept this "
                      "node: it is another member; it was removed again", error)
        self.assertEqual([one["name"] for one in node.state["members"]], ["a", "b", "c"])
        # The removal fails, too: it is left to the operator.
        node.override["/cluster/remove"] = (404, {"error": "there is no such path"})
        self.assertIn("; to take it back: tubectl cluster remove d",
                      self.failed(TIMED_OUT, node, "cluster", "add", "--timeout", "1", "d",
                                  "10.0.0.4"))
        self.assertIn("warning: no connection to d: it does not accept this node: it is another "
                      "member", self.done(node, "cluster", "status"))

    def test_does_not_wait_when_it_is_not_to(self):
        node = self.node()
        for words in (("add", "d", "10.0.0.4"), ("remove", "d"),
                      ("add", "--standby", "d", "10.0.0.4"), ("promote", "d"), ("transfer",),
                      ("transfer", "c")):
            node.requests.clear()
            self.assertEqual(self.done(node, "cluster", *words, "--no-wait"), "")
            self.assertEqual(len(node.requests), 2)

    def test_removes_a_node(self):
        node = self.node()
        self.assertEqual(self.done(node, "cluster", "remove", "c"), "c is no longer a member\n")
        self.assertEqual(json.loads(node.requests[1][2]), {"name": "c"})
        node.requests.clear()
        self.done(node, "cluster", "remove", "--force", "b")
        self.assertEqual(json.loads(node.requests[1][2]), {"name": "b", "force": True})
        self.assertIn("there is no node c (404)",
                      self.failed(FAILURE, node, "cluster", "remove", "c"))

    def test_removes_the_node_that_it_talks_to(self):
        node = self.node()
        node.override["/cluster/remove"] = (200, {})  # the node remains a member for a while
        looks = []

        def end(_):
            looks.append(True)
            if len(looks) == 3:
                node.stop_listening()
        node.on_look = end
        self.assertEqual(self.done(node, "cluster", "remove", "a"), "a was removed, and has ended\n")

    def test_transfers(self):
        node = self.node()
        self.assertEqual(self.done(node, "cluster", "transfer", "c"), "c leads\n")
        self.assertEqual(json.loads(node.requests[1][2]), {"name": "c"})
        self.assertEqual(self.done(node, "cluster", "transfer"), "a leads\n")
        self.assertEqual(json.loads(node.requests[-2][2]), {})
        self.assertEqual(self.done(node, "cluster", "transfer", "c", "--json"),
                         '{"action":"transfer","name":"c","done":true}\n')
        self.assertEqual(self.done(node, "cluster", "transfer", "--no-wait", "--json"),
                         '{"action":"transfer","name":null,"done":false}\n')

    def test_a_change_that_takes_no_effect(self):
        node = self.node()
        for words in (("add", "d", "10.0.0.4"), ("remove", "c"), ("transfer", "c"), ("transfer",)):
            node.override[f"/cluster/{words[0]}"] = (200, {})
            reason = self.failed(TIMED_OUT, node, "cluster", *words, "--timeout", "0.15")
            # The last query may have got no answer. tests/tubectl/cluster_test.cc checks the
            # reasons.
            self.assertTrue(reason.startswith(f"cluster {words[0]}: after 0.15 s: "), reason)

    def test_the_leader_changes_and_the_node_starts_again_meanwhile(self):
        node = self.node()
        refusals = [(503, {"error": "starting"})] * 2

        def refuse():
            if len(refusals) == 1:
                del node.override["/cluster"]
            return refusals.pop()
        steps = iter([
            lambda state: None,  # before the change
            lambda state: state["members"][3].update(match=0, votes=False),
            lambda state: state.update(leader=None, role="candidate"),
            lambda state: node.override.update({"/cluster": refuse}),
            lambda state: state.update(leader="b", role="follower")])

        def look(state):
            step = next(steps, None)
            if step:
                step(state)
            if len(state["members"]) > 3 and step:
                state["members"][3].update(match=0, votes=False)
        node.on_look = look
        self.assertEqual(self.done(node, "cluster", "add", "d", "10.0.0.4"), "d votes\n")
        self.assertEqual((node.state["leader"], refusals), ("b", []))

    def test_a_terminal_shows_what_is_waited_for(self):
        node = self.node(committed=1000)
        shown = self.on_terminal(NO_SERVER, "cluster", "add", "d", "10.0.0.4", stream="stderr",
                                 stdout=subprocess.PIPE, environment={"TUBED_ADMIN": node.address})
        self.assertEqual(self.output, b"d votes\n")
        self.assertIn(b"\rd is a standby that lacks 1000 entries\x1b[K\rd is a standby that "
                      b"lacks 500 entries\x1b[K", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)


class WaitCluster(ClusterTest):
    def test_a_healthy_cluster(self):
        node = self.node()
        for words in ((), ("--timeout", str(SECONDS))):
            self.assertEqual(self.done(node, "wait-cluster", *words), "")
        self.assertEqual(self.done(node, "wait-cluster", "--json"), '{"healthy":true}\n')

    def test_a_cluster_that_is_not_healthy_in_json(self):
        node = self.node()
        node.state["members"][2] |= {"votes": False}
        code, output, errors = self.run_on(node, "wait-cluster", "--timeout", "0", "--json")
        told = json.loads(output)
        self.assertEqual((code, told["healthy"]), (TIMED_OUT, False))
        self.assertEqual(errors, f"tubectl: wait-cluster: {told['reason']}\n")

    def test_waits(self):
        node = self.node(leader=None)
        node.state["members"][2] |= {"silent_ms": 5000, "match": 7, "votes": False}
        node.state["committed"] = 5000
        looks = []

        def recover(state):
            looks.append(True)
            if len(looks) == 2:
                state |= {"leader": "a"}
            if len(looks) == 3:
                for one in state["members"]:
                    one |= {"votes": True, "match": 4000}
            if len(looks) == 4:
                state["members"][2]["silent_ms"] = 999
        node.on_look = recover
        self.assertEqual(self.done(node, "wait-cluster", "--timeout", str(SECONDS)), "")
        self.assertEqual(len(looks), 4)

    def test_gives_up(self):
        node = self.node()
        node.state["members"][2] |= {"silent_ms": 5000}
        reason = self.failed(TIMED_OUT, node, "wait-cluster", "--timeout", "3")
        self.assertTrue(reason.startswith("wait-cluster: after 3 s: "), reason)

    def test_a_node_that_does_not_lead(self):
        node = self.node(leader="b", role="follower")
        for one in node.state["members"]:
            one |= {"leads": one["name"] == "b", "match": None, "silent_ms": None}
        self.assertEqual(self.failed(FAILURE, node, "wait-cluster"),
                         "wait-cluster: this node does not lead, and only the leader, b, knows how "
                         "far the members are: run it there")
        output = self.done(node, "cluster", "status")
        self.assertIn("warning: this node does not lead: only b knows how far the members are",
                      output)


if __name__ == "__main__":
    unittest.main()
