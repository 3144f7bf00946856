"""A fake node of a cluster for `tubectl cluster`: HTTP on a unix socket, with a state that tests
change.
"""

import copy
import http.server
import json
import socketserver
import threading


def member(name, number, **changes):
    return {"name": name, "id": f"{number:016x}", "address": f"10.0.0.{number}:11302",
            "votes": True, "leads": False, "self": False, "match": 100,
            "silent_ms": 10, "level": 2, "lag_ms": 0,
            "stays": False, "reached_at": None} | changes


def healthy_state():
    """Three nodes; a, which answers, leads."""
    return {"name": "a", "id": "0000000000000001", "cluster": "00000000c1a57e4d", "role": "leader",
            "leader": "a", "term": 3, "committed": 100, "applied": 100, "stored": 100,
            "lease_ms": 250, "raft_log_bytes": 1000, "held_over": 0, "feature_level": 1,
            "members": [member("a", 1, leads=True, self=True, silent_ms=None), member("b", 2),
                        member("c", 3)]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        node = self.server.node
        with node.lock:
            node.requests.append((self.command, self.path, body.decode()))
            answer = node.answer(self.command, self.path, body)
        if answer is None:  # silent until the end of the test
            node.closed.wait()
        elif isinstance(answer, bytes):
            self.wfile.write(answer)
        else:
            self.send_whole(*answer)
        self.close_connection = True

    do_GET = do_POST = answer

    def send_whole(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


class Listener(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # tubectl has closed the connection


class FakeAdmin:
    """Accepts each change. An added node gets half of its missing entries at each query, and
    then votes, unless it stays a standby. `on_look` may change the state before a query. `override` replaces the answer of
    a path: with (status, document), with raw bytes, with silence (None), or with the result of a
    function."""

    def __init__(self, path):
        self.path = path
        self.address = f"unix:{path}"
        self.state = healthy_state()
        self.on_look = None
        self.override = {}
        self.requests = []
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.listener = None
        self.open()

    def open(self):
        self.listener = Listener(str(self.path), Handler)
        self.listener.node = self
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.01},
                         daemon=True).start()

    def stop_listening(self):
        """Stops listening, as a node that has ended."""
        if self.listener is not None:
            self.listener.shutdown()
            self.listener.server_close()
            self.path.unlink(missing_ok=True)
        self.listener = None

    def close(self):
        self.closed.set()
        self.stop_listening()

    # --- Called with the lock held

    def answer(self, method, path, body):
        if path in self.override:
            answer = self.override[path]
            return answer() if callable(answer) else answer
        if (method, path) == ("GET", "/cluster"):
            return self.look()
        if method == "POST" and path.startswith("/cluster/"):
            return self.change(path.rpartition("/")[2], json.loads(body))
        return 404, {"error": "there is no such path"}

    def look(self):
        if self.on_look:
            self.on_look(self.state)
        answer = copy.deepcopy(self.state)
        for one in self.state["members"]:
            if not one["votes"]:
                one["match"] += (self.state["committed"] - one["match"] + 1) // 2
                one["votes"] = one["match"] == self.state["committed"] and not one["stays"]
        return 200, answer

    def change(self, action, change):
        members = self.state["members"]
        named = [one for one in members if one["name"] == change.get("name")]
        if action in ("add", "add-standby"):
            if named:
                return 409, {"error": f"{change['name']} is a member already"}
            members.append(member(change["name"], len(members) + 1, address=change["address"],
                                  votes=False, match=0, stays=action == "add-standby"))
        elif "name" in change and not named:
            return 404, {"error": f"there is no node {change['name']}"}
        elif action == "remove":
            members.remove(named[0])
        elif action == "promote":
            named[0]["stays"] = False
        elif action == "set-address":
            named[0] |= {"address": change["address"], "reached_at": None}
        else:
            leader = named[0] if named else next(one for one in members if not one["leads"])
            for one in members:
                one["leads"] = one is leader
            self.state |= {"leader": leader["name"],
                           "role": "leader" if leader["self"] else "follower"}
        return 200, {}
