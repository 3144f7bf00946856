#!/usr/bin/env python3
"""A cluster that is run like a single tubed: `cluster_as_server.py --listen unix:PATH [FLAG…]`.

The other flags apply to every node. $TUBED_CLUSTER_NODES is the number of nodes. This process
becomes the first node, which leads. Its socket gets the name PATH when all nodes vote: a program
that waits for the socket starts with a complete cluster, to which no client has connected. The
other nodes end with this process, even if it is killed. All files are in the directory of PATH.
"""

import http.client
import json
import os
import subprocess
import sys

from harness import PROGRAM, held_port, http_request, until


def request(path, method, target, body=None):
    """An HTTP exchange over a unix socket: (status, JSON), or (0, {}) without an answer."""
    try:
        status, text = http_request(path, method, target, body)
    except (OSError, http.client.HTTPException):
        return 0, {}
    return status, json.loads(text) if text.startswith("{") else {}


class Node:
    def __init__(self, directory, name, flags):
        self.path = f"{directory}/{name}"
        os.mkdir(self.path)
        self.name, self.admin, self.http = name, f"{self.path}/admin", f"{self.path}/http"
        self.holder = held_port()  # held until form_cluster() ends; all nodes listen then
        self.address = "%s:%d" % self.holder.getsockname()
        self.command = [
            PROGRAM, "--listen", f"unix:{self.path}/clients",
            "--journal-directory", self.path, "--journal-segment-size", "1048576",
            "--cluster-name", name, "--cluster-listen", self.address,
            "--cluster-admin", f"unix:{self.admin}", "--cluster-election-timeout", "10s",
            "--http-listen", f"unix:{self.http}", *flags]

    def status(self):
        return request(self.admin, "GET", "/cluster")[1]


def form_cluster(path, first, others):
    """Runs in a child of the process that becomes the first node."""
    until("the first node to serve", lambda: request(first.http, "GET", "/leader")[0] == 200)
    for node in others:
        until(f"node {node.name} to wait", lambda node=node: node.status().get("role") == "waiting")
        body = {"name": node.name, "address": node.address}
        until(f"node {node.name} to be added", lambda body=body: request(
            first.admin, "POST", "/cluster/add", body)[0] == 200)
    until("all nodes to vote", lambda: sum(
        member["votes"] for member in first.status().get("members", [])) == 1 + len(others))
    os.rename(f"{first.path}/clients", path)


def main():
    listen = sys.argv.index("--listen")
    path = sys.argv[listen + 1].removeprefix("unix:")
    flags = sys.argv[1:listen] + sys.argv[listen + 2:]
    directory = os.path.dirname(path)
    first, *others = [Node(directory, name, flags)
                      for name in "abcde"[:int(os.environ.get("TUBED_CLUSTER_NODES", "1"))]]
    subprocess.run([*first.command, "--cluster-bootstrap"], check=True, stdout=subprocess.DEVNULL)
    for node in others:  # they end with this process, even by SIGKILL
        subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *node.command],
                         stdin=subprocess.DEVNULL)
    if os.fork() == 0:
        form_cluster(path, first, others)
        os._exit(0)
    os.execv(PROGRAM, first.command)


if __name__ == "__main__":
    main()
