"""Calls every operation of the description of the HTTP API (docs/reference/openapi.yaml) on the
real daemon, and compares the answers with it: the status, the content type, and each member.

$TUBED_GENERATE_DOCS names the program that prints the description as JSON. ctest sets it.
"""

import json
import os
import pathlib
import subprocess
import unittest
import urllib.parse

from harness import SECONDS, DaemonTest, http_connection
from tls_tests import table

GENERATOR = os.environ.get("TUBED_GENERATE_DOCS", "build/dev/tools/docs/tubed-generate-docs")
BASE = "/api/v1"
JSON = "application/json"
PROBLEM = "application/problem+json"

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def has_type(value, name):
    if name in ("integer", "number"):
        numbers = int if name == "integer" else (int, float)
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


class Description:
    def __init__(self):
        done = subprocess.run([GENERATOR, "--openapi-json"], capture_output=True, check=True,
                              timeout=SECONDS)
        self.document = json.loads(done.stdout)

    def resolve(self, node):
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def with_job(self, schema):
        """A reservation has the members of its job."""
        schemas = self.document["components"]["schemas"]
        if schema != schemas["Reserved"]:
            return schema
        job = schemas["Job"]
        return {**schema, "required": schema["required"] + job["required"],
                "properties": {**job["properties"], **schema["properties"]}}

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                yield path, method.upper(), operation

    def differences(self, value, schema, where="$"):
        """Returns sentences about differences between the value and the schema. A member that the
        schema does not name is a difference as well, because a reader of the description would not
        know it."""
        schema = self.with_job(self.resolve(schema))
        types = schema.get("type", [])
        types = types if isinstance(types, list) else [types]
        if types and not any(has_type(value, name) for name in types):
            return [f"{where} is {value!r}, not {types}"]
        if "enum" in schema and value not in schema["enum"]:
            return [f"{where} is {value!r}, not one of {schema['enum']}"]
        found = []
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            found += [f"{where} has no {key}" for key in schema.get("required", [])
                      if key not in value]
            found += [f"{where}.{key} is not described" for key in value if key not in properties]
            for key in value.keys() & properties.keys():
                found += self.differences(value[key], properties[key], f"{where}.{key}")
        if isinstance(value, list):
            for index, item in enumerate(value):
                found += self.differences(item, schema.get("items", {}), f"{where}[{index}]")
        return found


class Case:
    """A call of an operation that must succeed with this status."""

    def __init__(self, status=200, headers=None, raw=None, accept=None, **parameters):
        self.status = status
        self.headers = headers or {}
        self.raw = raw  # the body of a put
        self.accept = accept
        self.parameters = parameters


class OpenApi(DaemonTest):
    @classmethod
    def setUpClass(cls):
        cls.description = Description()

    def serve(self):
        keys = {"http.listen": "127.0.0.1:0", "http.api": "full", "http.max_tubes": 10}
        return self.start("--config", self.write_config(table("", keys)))

    def request(self, daemon, method, path, body=None, headers=None):
        connection = http_connection(daemon.http_addresses[0])
        self.addCleanup(connection.close)
        connection.request(method, BASE + path, body=body, headers=headers or {})
        return connection.getresponse()

    def test_a_server_serves_the_description(self):
        keys = {"http.listen": "127.0.0.1:0", "http.api": "read", "http.role": "web"}
        role = table("[[role]]", {"name": "web", "verbs": ["produce"]})
        daemon = self.start("--config", self.write_config(table("", keys) + role))
        answer = self.request(daemon, "GET", "/openapi.json")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, JSON))
        self.assertEqual(json.loads(answer.read()), self.description.document)
        self.assertEqual(answer.headers["Cache-Control"], "no-cache")
        tag = answer.headers["ETag"]
        answer = self.request(daemon, "GET", "/openapi.json", headers={"If-None-Match": tag})
        self.assertEqual((answer.status, answer.read()), (304, b""))
        self.assertEqual(self.request(daemon, "HEAD", "/openapi.json").status, 200)
        answer = self.request(daemon, "POST", "/openapi.json")
        self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"))

    def call(self, daemon, path, method, operation, case):
        """Sends each parameter as the description says; returns the response."""
        left = dict(case.parameters)
        query = {}
        headers = dict(case.headers)
        for parameter in map(self.description.resolve, operation.get("parameters", [])):
            name = parameter["name"]
            if parameter["in"] == "header":
                headers.setdefault(name, "test")
            elif name in left:
                value = str(left.pop(name))
                if parameter["in"] == "path":
                    path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
                else:
                    query[name] = value
            else:
                self.assertFalse(parameter.get("required"), f"{name} is missing")
        body = case.raw
        if left:
            schema = operation["requestBody"]["content"][JSON]["schema"]
            self.assertEqual(self.description.differences(left, schema), [])
            body = json.dumps(left).encode()
        if case.accept:
            headers["Accept"] = case.accept
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return self.request(daemon, method, path, body, headers)

    def check(self, operation, response, status, accept=None):
        described = self.description.resolve(operation["responses"][str(response.status)])
        content = described.get("content", {})
        kind = response.headers["Content-Type"]
        if not content:
            self.assertEqual(response.read(), b"")
            return None
        self.assertIn(kind, content)
        for name in described.get("headers", {}):
            self.assertIsNotNone(response.headers[name], name)
        if kind not in (JSON, PROBLEM):
            return None if kind == "text/event-stream" else response.read()
        body = response.read()
        self.assertEqual(response.status, status, body)
        value = json.loads(body)
        schema = self.description.resolve(content[kind]["schema"])
        self.assertEqual(self.description.differences(value, schema), [])
        if accept:
            self.assertEqual(kind, accept)
        return value

    def cases(self, daemon):
        """Returns the calls of each operation; each finds the jobs and the tubes that it needs."""
        client = self.connect(daemon)

        def put(tube="mail", line="5 0 60", tags=""):
            reply = client.ask(f"put-in-tube {tube} {line} 1 {tags}".rstrip() + "\r\nx")
            self.assertTrue(reply.startswith("INSERTED "), reply)
            return int(reply.split()[1])

        def reserved():
            job = put("held")
            response = self.request(daemon, "POST", f"/jobs/{job}/reserve", None,
                                    {"X-Requested-By": "test"})
            return json.loads(response.read())["token"]

        def reserved_jobs():
            put("batch")
            put("batch")
            response = self.request(daemon, "POST", "/tubes/batch/reserve-batch", None,
                                    {"X-Requested-By": "test"})
            return json.loads(response.read())

        def tagged():
            return put("tags/1", tags="idp:a:9 con:b:2 grp:c aft:d max:3:5 ttl:99")

        for line in ("reserve-with-timeout 0", "use 5", "watch 6"):
            client.ask(line)
        put()
        tagged()
        client.ask("tube-policy mail max-attempts 5")
        client.ask("tube-policy mail dead 7")
        return {
            "getAccess": [Case()],
            "getServer": [Case()],
            "getCapabilities": [Case()],
            "getSettings": [Case()],
            "getHistory": [Case(), Case(span="day"), Case(span="day", tube="default"),
                           Case(404, tube="no-such-tube")],
            "getCluster": [Case(404)],  # the server is not in a cluster
            "watchEvents": [Case()],
            "drain": [Case()],
            "undrain": [Case()],
            "reload": [Case()],
            "listTubes": [Case(), Case(**{"from": 1, "limit": 2}),
                          Case(filter="a", sort="ready", order="desc", limit=1)],
            "getTube": [Case(tube="mail"), Case(tube="tags/1")],
            "getTubeTimes": [Case(tube="mail")],
            "listJobs": [Case(tube="mail"), Case(tube="tags/1", state="all", limit=5),
                         Case(tube="mail", state="next"),
                         Case(tube="mail", q="x"),
                         Case(tube="tags/1", state="all", q="x", age_below=99, pri_over=4,
                              pri_below=6, tag="con:b"),
                         Case(tube="tags/1", age_over=9, failures_over=1)],
            "putJob": [Case(201, raw=b"body", tube="new", pri=1, delay="500ms", ttr=9,
                            tags="idp:k grp:g"),
                       Case(200, raw=b"body", tube="new", tags="idp:k")],
            "putJobs": [Case(raw=json.dumps([
                {"body": "a"}, {"body_base64": "/w==", "pri": 1, "delay": "5m", "ttr": 9,
                                "tags": "idp:k"}, {"body": "", "tags": "idp:k"}]).encode(),
                             tube="many", pri=5)],
            "reserveJobs": [lambda: (put("6"), put("6"), Case(201, tube="6", count=2))[2],
                            Case(204, tube="nothing")],
            "deleteJobs": [lambda: Case(ids=[put(), 999]), lambda: Case(ids=f"{put()},{put()}")],
            "deleteReservedJobs": [lambda: Case(token=reserved_jobs()["token"])],
            "touchReservedJobs": [lambda: Case(token=reserved_jobs()["token"]),
                                  lambda: Case(token=reserved())],
            "kickTube": [Case(tube="mail"), Case(tube="mail", bound=5, state="buried")],
            "pauseTube": [Case(tube="mail", delay=1), Case(tube="mail", delay=0)],
            "clearTube": [Case(tube="cleared"), Case(tube="cleared", state="ready", bound=3)],
            "truncateTube": [lambda: (put("cleared"), Case(tube="cleared"))[1]],
            "moveJobs": [Case(tube="mail", state="buried", to="later", bound=5)],
            "getPolicy": [Case(tube="mail")],
            "setPolicy": [Case(tube="mail", key="max-timeouts", value=5),
                          Case(tube="mail", key="backoff", value="5:60:2")],
            "removePolicy": [Case(tube="mail", key="backoff")],
            "reserve": [lambda: (put("5"), Case(201, tube="5"))[1], Case(204, tube="nothing")],
            "getJob": [lambda: Case(id=put()), lambda: Case(id=tagged() or 1)],
            "getJobBody": [lambda: Case(id=put()), lambda: Case(id=put(), accept=JSON)],
            "waitForJob": [lambda: Case(id=put(), seconds=0)],
            "deleteJob": [lambda: Case(id=put())],
            "deleteJobByForce": [lambda: Case(id=put())],
            "kickJob": [lambda: Case(id=put(line="5 99 60")),
                        lambda: Case(id=put(line="5 99 60"), delay="1500ms")],
            "moveJob": [lambda: Case(id=put(), tube="later"),
                        lambda: Case(id=put(), tube="later", pri=1, delay=1)],
            "reprioritizeJob": [lambda: Case(id=put(), pri=3)],
            "reserveJob": [lambda: Case(201, id=put())],
            "getReservation": [lambda: Case(token=reserved()),
                               lambda: Case(token=reserved_jobs()["jobs"][1]["token"])],
            "deleteReservation": [lambda: Case(token=reserved())],
            "releaseReservation": [lambda: Case(token=reserved()),
                                   lambda: Case(token=reserved(), pri=1, delay=2)],
            "buryReservation": [lambda: Case(token=reserved(), pri=1)],
            "touchReservation": [lambda: Case(token=reserved()),
                                 lambda: Case(token=reserved(), seconds=5)],
            "listClients": [Case(), Case(limit=1)],
            "getGroup": [Case(group="c")],
        }

    def test_every_operation_answers_as_described(self):
        daemon = self.serve()
        cases = self.cases(daemon)
        operations = list(self.description.operations())
        self.assertEqual(sorted(operation["operationId"] for _, _, operation in operations),
                         sorted(cases))
        for path, method, operation in operations:
            for case in cases[operation["operationId"]]:
                case = case() if callable(case) else case
                with self.subTest(operation["operationId"], **case.parameters):
                    response = self.call(daemon, path, method, operation, case)
                    self.assertEqual(response.status, case.status,
                                     response.read() if response.status != case.status else None)
                    self.check(operation, response, case.status, case.accept)

    def test_problems_are_as_described(self):
        daemon = self.serve()
        samples = {"tube": "nothing", "id": 999, "token": "0" * 32, "group": "nothing",
                   "key": "ttl"}
        for path, method, operation in self.description.operations():
            parameters = [one["name"] for one in operation.get("parameters", [])
                          if one.get("in") == "path"]
            target = path
            for name in parameters:
                target = target.replace("{" + name + "}", str(samples[name]))
            marker = {"X-Requested-By": "test"}
            calls = [(target + "?no-such-parameter=1", marker, (400, 404)),
                     (target, {**marker, "Host": "evil.example"}, (421,)),
                     (target, {**marker, "Origin": "http://evil.example"}, (403,))]
            if method != "GET":
                calls.append((target, {}, (403,)))
            for query, headers, statuses in calls:
                with self.subTest(operation["operationId"], query=query, headers=headers):
                    body = b"x" if operation["operationId"] == "putJob" else None
                    response = self.request(daemon, method, query, body, headers)
                    self.assertIn(response.status, statuses)
                    self.check(operation, response, response.status)
        self.assertEqual(self.connect(daemon).stats()["total-jobs"], 0)

    def test_missing_things_are_not_found(self):
        daemon = self.serve()
        for path in ("/tubes/nothing", "/tubes/nothing/times", "/jobs/999", "/jobs/999/body",
                     "/jobs/999/wait", "/groups/nothing", "/reservations/nothing"):
            with self.subTest(path):
                response = self.request(daemon, "GET", path)
                self.assertEqual((response.status, response.headers["Content-Type"]),
                                 (404, PROBLEM))
                self.assertEqual(json.loads(response.read())["reply"], "NOT_FOUND")

    def test_methods_that_a_path_does_not_have(self):
        daemon = self.serve()
        for path, methods in self.description.document["paths"].items():
            target = path.replace("{", "").replace("}", "")
            for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
                if method.lower() in methods:
                    continue
                with self.subTest(path, method=method):
                    response = self.request(daemon, method, target, None, {"X-Requested-By": "t"})
                    self.assertEqual(response.status, 405, response.read())
                    allowed = set(response.headers["Allow"].split(", ")) - {"HEAD"}
                    self.assertEqual(allowed, {name.upper() for name in methods})

    def test_the_page_is_that_of_the_program(self):
        page = pathlib.Path(__file__).parents[2] / "docs/reference/openapi.yaml"
        text = page.read_text(encoding="utf-8")
        for _, _, operation in self.description.operations():
            self.assertIn(f"operationId: {operation['operationId']}\n", text)


if __name__ == "__main__":
    unittest.main()
