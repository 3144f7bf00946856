"""The alert rules and the dashboard: Prometheus' own checks, a test of each alert, and no metric
that the daemon does not have.

  TUBED_PROGRAM=build/dev/src/tubed python3 packaging/tests/monitoring_test.py
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "daemon"))

from harness import SECONDS, DaemonTest  # noqa: E402

RULES = HERE.parent / "prometheus" / "tubed.rules.yml"
RULES_TEST = HERE / "rules_test.yml"
DASHBOARD = HERE.parent / "grafana" / "tubed.json"


def promtool(*arguments):
    """(exit code, what it says)"""
    program = shutil.which("promtool")
    if not program:
        raise AssertionError("promtool is not installed: tools/install-deps")
    done = subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
                          check=False)
    return done.returncode, done.stdout


def unknown_names(text, page):
    """Names of metrics in `text` that the page does not have, also as a histogram's series."""
    known = set()
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", page, re.M):
        known |= {name} if kind != "histogram" else {f"{name}_{end}"
                                                     for end in ("bucket", "sum", "count")}
    return set(re.findall(r"\btubed_\w+", text)) - known


def queries_of(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


class Rules(unittest.TestCase):
    def test_promtool_takes_them(self):
        code, told = promtool("check", "rules", RULES)
        self.assertEqual(code, 0, told)

    def test_each_alert_as_it_is_meant(self):
        code, told = promtool("test", "rules", RULES_TEST)
        self.assertEqual(code, 0, told)
        alerts = re.findall(r"- alert: (\w+)$", RULES.read_text(encoding="utf-8"), re.M)
        tested = re.findall(r"^  - name: (\w+)$", RULES_TEST.read_text(encoding="utf-8"), re.M)
        self.assertEqual(alerts, [name for name in alerts if name in tested])
        self.assertEqual(len(tested), len(alerts))

    def test_a_wrong_bound_is_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            for right, wrong in (("> 900", "> 9000"), ("for: 15m", "for: 45m"), ("0.8 *", "0.9 *")):
                text = RULES.read_text(encoding="utf-8")
                self.assertIn(right, text)
                (scratch / RULES.name).write_text(text.replace(right, wrong), encoding="utf-8")
                test = RULES_TEST.read_text(encoding="utf-8")
                (scratch / "test.yml").write_text(test.replace("../prometheus/", ""),
                                                  encoding="utf-8")
                code, told = promtool("test", "rules", scratch / "test.yml")
                self.assertNotEqual(code, 0, told)


class Names(DaemonTest):
    def setUp(self):
        super().setUp()
        journal = self.directory / "journal"
        journal.mkdir()
        daemon = self.start("--http-listen", "127.0.0.1:0", "-b", str(journal))
        with urllib.request.urlopen(f"http://{daemon.http_addresses[0]}/metrics",
                                    timeout=SECONDS) as answer:
            self.page = answer.read().decode()
        self.dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))

    def test_all_of_them_are_on_the_page(self):
        self.assertEqual(unknown_names(RULES.read_text(encoding="utf-8"), self.page), set())
        queries = "\n".join(queries_of(self.dashboard))
        self.assertGreater(len(re.findall(r"\btubed_", queries)), 40)
        self.assertEqual(unknown_names(queries, self.page), set())
        self.assertEqual(unknown_names("rate(tubed_loop_turn_seconds[1m]) > tubed_jobs + tubed_job",
                                       self.page), {"tubed_loop_turn_seconds", "tubed_job"})

    def test_prometheus_reads_every_query(self):
        queries = [re.sub(r"\$__rate_interval", "5m", query) for query in queries_of(self.dashboard)
                   if not query.startswith("label_values(")]
        rules = {"groups": [{"name": "queries", "rules": [
            {"record": f"query:{i}", "expr": query} for i, query in enumerate(queries)]}]}
        path = self.directory / "queries.yml"
        path.write_text(json.dumps(rules), encoding="utf-8")  # which is YAML as well
        code, told = promtool("check", "rules", path)
        self.assertEqual(code, 0, told)

    def test_panels_stand_apart(self):
        ids = [panel["id"] for panel in self.dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for panel in self.dashboard["panels"]:
            at = panel["gridPos"]
            cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(at["x"] + at["w"], 24)
            taken |= cells


if __name__ == "__main__":
    unittest.main()
