"""Changes of a cluster's members: bootstrap, add, remove, replace, leave, recover, backup, and
orderly changes of the leader.
"""

import shutil
import time
import unittest

from cluster import (CALM, EXIT_DAMAGED, EXIT_REMOVED, EXIT_SUPERSEDED, Cluster, ClusterTest,
                     one_error_line)
from harness import SANITIZED, Daemon, http_request, run, until
from metrics_test import check_page


class Members(ClusterTest):
    def put_all_states(self, client):
        """Leaves jobs in every state, and pauses a tube."""
        for tube in ("one", "two"):
            client.ask(f"use {tube}")
            client.ask(f"watch {tube}")
            for number in range(10):
                client.put(b"%s %d" % (tube.encode(), number), priority=number, delay=0, ttr=60)
            client.put(b"delayed", priority=3, delay=10_000)
        for command, times in (("bury {} 5", 3), ("release {} 7 0", 2), ("release {} 8 5000", 2),
                               ("delete {}", 2)):
            for _ in range(times):
                job, _ = client.reserve("reserve-with-timeout 0")
                self.assertRegex(client.ask(command.format(job)), "^(BURIED|RELEASED|DELETED)$")
        self.assertEqual(client.ask("kick 1"), "KICKED 1")
        self.assertEqual(client.ask("pause-tube two 5000"), "PAUSED")
        client.reserve("reserve-with-timeout 0")

    # --- From a single server and back

    def test_from_a_single_server_to_a_cluster_and_back(self):
        cluster = Cluster(self)
        first = cluster["a"]
        first.write_settings(cluster_mode=False)
        single = Daemon(["--config", str(first.config)], listeners=1)
        self.daemons.append(single)
        self.addCleanup(self.end, single)
        client = first.connect()
        self.put_all_states(client)
        client.close()
        before = first.all_jobs()
        self.end(single)
        first.write_settings()
        code, _, errors = first.task()  # the directory has jobs but no state of a node
        self.assertEqual(code, EXIT_DAMAGED, errors)
        self.assertIn("--cluster-bootstrap", one_error_line(errors))

        cluster.start()
        self.assertEqual(cluster.check_replicas(), before)
        client = cluster.connect()
        self.assertGreater(client.stats("stats-tube two")["pause-time-left"], 1000)
        client.put(b"put in the cluster")
        after = cluster.leader().all_jobs()

        cluster.hand_over(first)
        for name in ("b", "c"):
            cluster.remove(name)
            cluster[name].wait_for_exit(EXIT_REMOVED)
            cluster.wait_for_voters([n for n in cluster.names() if n in ("a", "c") and n > name] +
                                    ["a"])
        code, _, errors = first.task("--cluster-leave")
        self.assertNotEqual(code, 0)  # the node runs
        first.stop()
        code, _, errors = first.task("--cluster-leave")
        self.assertEqual(code, 0, errors)
        self.assertFalse((first.journal / "cluster").exists())
        first.write_settings(cluster_mode=False)
        single = Daemon(["--config", str(first.config)], listeners=1)
        self.daemons.append(single)
        self.addCleanup(self.end, single)
        self.assertEqual(first.all_jobs(), after)

    def test_a_bootstrap_is_done_once(self):
        cluster = Cluster(self, nodes=1).start()
        node = cluster["a"]
        job = cluster.connect().put(b"x")
        node.stop()
        code, _, errors = node.task("--cluster-bootstrap")
        self.assertNotEqual(code, 0)
        one_error_line(errors)
        node.start()
        self.assertEqual(cluster.connect().ask(f"delete {job}"), "DELETED")

    def test_recover_from_the_loss_of_a_majority(self):
        cluster = Cluster(self).start()
        client = cluster.connect()
        self.put_all_states(client)
        client.close()
        cluster.wait_until_applied()
        cluster.hand_over(cluster["a"])
        before = cluster["a"].all_jobs()
        old = cluster["a"].status()
        for node in cluster:
            node.kill()
        survivor, lost, wiped = cluster
        code, _, errors = survivor.task("--cluster-recover")
        self.assertNotEqual(code, 0)
        self.assertIn("--i-accept-the-loss", one_error_line(errors))
        code, _, errors = survivor.task("--cluster-recover", "--i-accept-the-loss")
        self.assertEqual(code, 0, errors)
        survivor.start()
        cluster.leader()
        self.assertEqual(survivor.all_jobs(), before)
        new = survivor.status()
        self.assertEqual([m["name"] for m in new["members"]], ["a"])
        self.assertNotEqual(new["cluster"], old["cluster"])
        # The lost majority comes back. It could serve, but learns from the survivor that it ends.
        survivor.stop()
        survivor.start()
        for node in (lost, wiped):
            node.start(wait=False)
        for node in (lost, wiped):
            node.wait_for_exit(EXIT_SUPERSEDED)
        survivor.daemon.wait_for_line("another node was not accepted")
        self.assertTrue(survivor.serves())
        self.assertEqual(len(survivor.status()["members"]), 1)
        code, _, errors = lost.task()
        self.assertEqual(code, EXIT_DAMAGED, errors)
        self.assertIn("was recovered on another node", one_error_line(errors))
        for node in (lost, wiped):
            self.wipe(node)
            node.start()
            cluster.add(node)
        cluster.wait_for_voters()
        self.assertEqual(cluster.check_replicas(), before)

    def wipe(self, node):
        shutil.rmtree(node.journal)
        node.journal.mkdir()

    # --- Add, remove, replace

    def test_replace_a_node_under_load(self):
        cluster = Cluster(self).start()
        load = self.start_load(cluster)
        for node in cluster.followers():
            old_id = node.status()["id"]
            node.kill()
            cluster.remove(node.name)
            cluster.wait_for_voters(sorted(set(cluster.names()) - {node.name}))
            self.wipe(node)
            node.start()
            self.assertEqual(node.role(), "waiting")
            cluster.add(node)
            cluster.wait_for_voters()
            self.assertNotEqual(node.status()["id"], old_id)
        self.stop_load(load)
        cluster.check_replicas()
        cluster.check_journals()

    def test_a_voter_that_has_lost_its_disk_is_not_taken_back(self):
        """The node has lost its votes, and entries that it acknowledged."""
        cluster = Cluster(self).start()
        node = cluster.followers()[0]
        node.kill()
        self.wipe(node)
        node.start()
        node.daemon.wait_for_line("remove it from the cluster and add it again")
        self.assertEqual(node.role(), "waiting")
        cluster.remove(node.name)
        cluster.wait_for_voters(sorted(set(cluster.names()) - {node.name}))
        cluster.add(node)
        cluster.wait_for_voters()

    def test_a_server_of_its_own_does_not_take_the_journal_of_a_node(self):
        cluster = Cluster(self, nodes=1).start()
        [node] = cluster
        node.stop()
        code, _, errors = run("-b", str(node.journal), "-l", "127.0.0.1:0")
        self.assertEqual(code, 73, errors)
        self.assertIn("--cluster-leave", one_error_line(errors))

    def test_remove_nodes_and_the_leader_under_load(self):
        cluster = Cluster(self, nodes=4, election=CALM).start()
        load = self.start_load(cluster)
        follower = cluster.followers()[0]
        self.remove(cluster, follower)
        old = cluster.leader()
        self.remove(cluster, old)
        self.assertIsNot(cluster.leader(), old)
        self.stop_load(load)
        cluster.check_replicas()

    def remove(self, cluster, node):
        cluster.remove(node.name)
        # It exits with one clear line, and with a code after which systemd does not restart it.
        node.wait_for_exit(EXIT_REMOVED)
        self.assertTrue(node.daemon.lines_with("removed"), node.daemon.lines[-5:])
        del cluster.nodes[node.name]
        cluster.wait_for_voters()

    def test_a_node_that_is_added_before_it_runs(self):
        cluster = Cluster(self).start()
        load = self.start_load(cluster, clients=10)
        late = cluster.new_node("d")
        cluster.add(late)
        load.next_put()
        self.assertEqual(
            [m["votes"] for m in cluster.leader().status()["members"] if m["name"] == "d"], [False])
        late.start()
        cluster.wait_for_voters()
        self.stop_load(load)

    def test_a_node_that_cannot_be_added(self):
        cluster = Cluster(self, nodes=2).start()

        def failure_of(name, address):
            """Returns what the leader says of the link to a member that it has added."""
            cluster.change("/cluster/add", {"name": name, "address": address})
            member = until("a failure", lambda: next(
                (one for one in cluster.leader().status()["members"]
                 if one["name"] == name and one["failure"]), None))
            cluster.remove(name)
            return member["failure"]

        new = cluster.new_node("c")
        self.assertIn("Connection refused", failure_of("c", new.address))  # it does not run
        new.start()
        self.assertIn("it is another member", failure_of("d", new.address))

    def test_a_removal_that_would_leave_no_majority(self):
        cluster = Cluster(self).start()
        leader, (alive, dead) = cluster.leader(), cluster.followers()
        dead.kill()
        until("the silence to be felt", lambda: next(
            one for one in leader.status()["members"]
            if one["name"] == dead.name)["silent_ms"] > 5000)
        status, answer = leader.ask("POST", "/cluster/remove", {"name": alive.name})
        self.assertEqual(status, 409)
        self.assertIn(f"{dead.name} is silent; --force", answer["error"])
        cluster.remove(dead.name)
        cluster.complete({leader.name, alive.name})

    def test_the_requests_of_operators(self):
        cluster = Cluster(self).start()
        free = cluster.new_node("d")
        leader, follower = cluster.leader(), cluster.followers()[0]
        for node in (leader, follower):  # a follower forwards
            for path, body, expected in (
                    ("/cluster/add", {"name": "d"}, 400),
                    ("/cluster/add", {"name": "d d", "address": free.address}, 400),
                    ("/cluster/add", {"name": "d", "address": "10.0.0.300:1"}, 400),
                    ("/cluster/add", {"name": "a", "address": free.address}, 409),
                    ("/cluster/add-standby", {"name": "d"}, 400),
                    ("/cluster/add-standby", {"name": "a", "address": free.address}, 409),
                    ("/cluster/promote", {"name": "nobody"}, 404),
                    ("/cluster/promote", {}, 400),
                    ("/cluster/remove", {"name": "nobody"}, 404),
                    ("/cluster/remove", {}, 400),
                    ("/cluster/transfer", {"name": "nobody"}, 404),
                    ("/cluster/nothing", {}, 404)):
                code, answer = node.ask("POST", path, body)
                self.assertEqual(code, expected, (node.name, path, body, answer))
                self.assertEqual(answer["error"].count("\n"), 0)
            self.assertEqual(node.ask("GET", "/cluster/add")[0], 405)
        code, answer = follower.ask("POST", "/cluster/transfer", {"name": follower.name})
        self.assertEqual((code, answer), (200, {}))
        cluster.hand_over(follower)

    def test_the_status_of_each_node(self):
        cluster = Cluster(self).start()
        statuses = [node.status() for node in cluster]
        self.assertEqual(len({status["cluster"] for status in statuses}), 1)
        self.assertEqual({status["leader"] for status in statuses}, {cluster.leader().name})
        self.assertEqual(sorted(status["role"] for status in statuses),
                         ["follower", "follower", "leader"])
        for status, node in zip(statuses, cluster):
            self.assertEqual(status["name"], node.name)
            self.assertRegex(status["id"], "^[0-9a-f]{16}$")
            me, = (m for m in status["members"] if m["self"])
            self.assertEqual((me["name"], me["id"], me["address"]),
                             (node.name, status["id"], node.address))
            self.assertEqual(status["lease_ms"] is not None, status["role"] == "leader")
            check_page(http_request(node.http, "GET", "/metrics")[1])

    # --- Fetch

    def put_bytes(self, cluster, megabytes):
        client = cluster.connect()
        body = b"x" * 50_000
        client.pump((b"put 0 0 1000 50000\r\n" + body + b"\r\n") * (megabytes * 20), megabytes * 20)
        return client

    def test_a_node_whose_entries_are_cut_fetches_the_state(self):
        cluster = Cluster(self, settings={"cluster__log_size": 64 << 20}).start()
        late = cluster.followers()[0]
        late.kill()
        client = self.put_bytes(cluster, 120)
        late.start()
        cluster.wait_for_voters()
        late.daemon.wait_for_line("fetch")
        self.assertEqual(client.ask("delete 1"), "DELETED")
        cluster.hand_over(late)
        self.assertEqual(cluster.connect().stats()["current-jobs-ready"], 120 * 20 - 1)

    def test_kills_while_a_node_fetches(self):
        cluster = Cluster(self, settings={"cluster__fetch_rate": 64 << 10})
        first, second, third = cluster
        first.bootstrap()
        first.start()
        self.put_bytes(cluster, 10)
        second.start()
        cluster.add(second)
        for _ in range(3):
            until("the node to fetch", lambda: second.role() == "fetching")
            second.kill()
            second.start()
        until("the node to fetch", lambda: second.role() == "fetching")
        first.kill()
        cluster.settings["cluster__fetch_rate"] = 0
        for node in cluster:
            node.write_settings()
        first.start()
        cluster.wait_for_voters(["a", "b"])
        third.start()
        cluster.add(third)
        cluster.wait_for_voters()
        self.assertEqual(len(cluster.check_replicas()), 200)

    # --- Backup

    def wait_for_the_journal(self, node):
        """Waits until the journal has what the node has applied: one write may be in progress, and
        the load causes the next."""
        def writes():
            return node.metrics()["tubed_journal_commits_total"]
        enough = writes() + 2
        until("two writes of the journal", lambda: writes() >= enough)

    def test_a_backup_of_a_running_node(self):
        cluster = Cluster(self).start()
        client = cluster.connect()
        self.put_all_states(client)
        client.close()
        jobs = cluster.leader().all_jobs()
        load = self.start_load(cluster, clients=10)
        cluster.wait_until_applied()
        for node in (cluster.leader(), cluster.followers()[0]):
            self.wait_for_the_journal(node)
            backup = self.directory / f"backup-{node.name}"
            code, _, errors = node.task("--backup", str(backup))
            self.assertEqual(code, 0, errors)
            code, _, errors = run("--check", str(backup))
            self.assertEqual(code, 0, errors)
        self.stop_load(load)
        for node in cluster:
            node.stop()
        node = cluster["a"]
        for backup in sorted(self.directory.glob("backup-*")):
            node.write_settings(cluster_mode=False, journal__directory=str(backup))
            single = Daemon(["--config", str(node.config)], listeners=1)
            found = node.all_jobs()
            self.assertEqual(single.end(), 0)
            self.assertEqual({job: found.get(job) for job in jobs}, jobs)

    def test_a_backup_of_a_standby_under_load(self):
        cluster = Cluster(self).start()
        client = cluster.connect()
        self.put_all_states(client)
        client.close()
        before = cluster.leader().all_jobs().keys()
        load = self.start_load(cluster, clients=10)
        copy = cluster.new_node("copy").start()
        cluster.add_standby(copy)
        client = cluster.connect()
        client.ask("use kept")
        kept = {client.put(b"kept %d" % number, ttr=60) for number in range(100)}
        client.close()
        cluster.wait_until_applied([copy])
        self.wait_for_the_journal(copy)
        backup = self.directory / "backup"
        code, _, errors = copy.task("--backup", str(backup))
        self.assertEqual(code, 0, errors)
        self.stop_load(load)
        self.assertFalse(cluster.leader().member("copy")["votes"])
        jobs = {job: state for job, state in cluster.leader().all_jobs().items()
                if job in kept or job in before}
        self.assertEqual(jobs.keys(), kept | before)
        for node in cluster:
            node.stop()
        code, _, errors = run("--check", str(backup))
        self.assertEqual(code, 0, errors)
        copy.write_settings(cluster_mode=False, journal__directory=str(backup))
        single = Daemon(["--config", str(copy.config)], listeners=1)
        found = copy.all_jobs()
        self.assertEqual(single.end(), 0)
        self.assertEqual({job: found.get(job) for job in jobs}, jobs)

    # --- A standby that stays

    def test_a_standby_stays_over_restarts_and_changes_of_the_leader(self):
        cluster = Cluster(self).start()
        voters = cluster.names()
        copy = cluster.new_node("copy").start()
        cluster.add_standby(copy)

        def leader_finds_it_without_a_vote():
            """The leader has had time to promote a standby that has everything."""
            leader = cluster.leader()
            client = cluster.connect()
            client.put(b"x")
            client.close()
            cluster.wait_until_applied([copy])
            looks = leader.metrics()["tubed_loop_turn_seconds_count"] + 100
            until("100 turns of the leader",
                  lambda: leader.metrics()["tubed_loop_turn_seconds_count"] >= looks)
            member = leader.member("copy")
            self.assertEqual((member["votes"], member["stays"], member["lag_ms"] is not None),
                             (False, True, True))

        leader_finds_it_without_a_vote()
        former = cluster.leader().name
        cluster.hand_over(cluster[next(name for name in voters if name != former)])
        leader_finds_it_without_a_vote()
        for node in cluster:
            node.stop()
        for node in cluster:
            node.start()
        leader_finds_it_without_a_vote()
        self.assertEqual(copy.status()["role"], "standby")
        cluster.change("/cluster/promote", {"name": "copy"})
        cluster.wait_for_voters(sorted([*voters, "copy"]))
        self.assertFalse(cluster.leader().member("copy")["stays"])
        cluster.hand_over(copy)

    # --- Orderly changes of the leader

    def test_the_leader_hands_over_when_it_is_stopped(self):
        cluster = Cluster(self, settings={"cluster__hold_grace": "1h"}).start()
        load = self.start_load(cluster)
        for _ in range(2 if SANITIZED else 6):
            leader = cluster.leader()
            worker = cluster.connect()
            job = worker.put(b"held over", ttr=1000)
            self.assertEqual(worker.ask(f"reserve-job {job}"), f"RESERVED {job} 9")
            worker.read(11)
            leader.daemon.process.terminate()
            load.next_put()
            self.assertEqual(leader.daemon.wait(), 0)
            worker = cluster.connect()
            self.assertEqual(worker.stats(f"stats-job {job}")["state"], "reserved")
            self.assertEqual(worker.ask(f"delete {job}"), "DELETED")
            leader.start()
            cluster.wait_for_voters()
        self.stop_load(load)

    def test_transfers_under_load(self):
        cluster = Cluster(self, election=CALM).start()
        load = self.start_load(cluster)
        for number in range(3 if SANITIZED else 15):
            cluster.hand_over(cluster.followers()[number % 2])
            load.next_put()
        self.stop_load(load)
        cluster.check_replicas()

    def lose_the_leader_of_a_held_job(self, grace):
        """Returns (a client of the next leader, the job, the earliest time of its reservation)."""
        cluster = Cluster(self, settings={"cluster__hold_grace": grace}, election=CALM).start()
        worker = cluster.connect()
        job = worker.put(b"x", ttr=1000)
        began = time.monotonic()
        self.assertEqual(worker.ask(f"reserve-job {job}"), f"RESERVED {job} 1")
        worker.read(3)
        cluster.leader().kill()
        return cluster.connect(), job, began

    def test_held_jobs_are_held_over(self):
        worker, job, _ = self.lose_the_leader_of_a_held_job("1h")
        self.assertEqual(worker.stats()["cluster-held-over"], 1)
        self.assertEqual(worker.ask("reserve-with-timeout 0"), "TIMED_OUT")
        self.assertEqual(worker.ask(f"delete {job}"), "DELETED")

    def test_held_jobs_are_ready_after_the_grace(self):
        # The grace is longer than an election, so another leader has the job first.
        worker, job, reserved = self.lose_the_leader_of_a_held_job("8s")
        self.assertEqual(worker.reserve("reserve-with-timeout 600"), (job, b"x"))
        self.assertGreater(time.monotonic() - reserved, 7.9)
        self.assertEqual(worker.ask(f"delete {job}"), "DELETED")


if __name__ == "__main__":
    unittest.main()
