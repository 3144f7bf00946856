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

import certificates  # noqa: E402
from harness import SECONDS, DaemonTest  # noqa: E402

RULES = HERE.parent / "prometheus" / "tubed.rules.yml"
RULES_TEST = HERE / "rules_test.yml"
REFERENCE = HERE.parents[1] / "docs" / "reference" / "metrics.md"
DASHBOARD = HERE.parent / "grafana" / "tubed.json"


def promtool(*arguments):
    """(exit code, output)"""
    program = shutil.which("promtool")
    if not program:
        raise AssertionError("promtool is not installed: tools/install-deps more")
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


def cluster_page():
    """The families of a node of a cluster, which a single server has not, from the reference."""
    rows = re.findall(r"^\| `(tubed_cluster_\w+)` \| (\w+) \|[^|]*\| (.*) \|$",
                      REFERENCE.read_text(encoding="utf-8"), re.M)
    return "".join(f"# HELP {name} {text}\n# TYPE {name} {kind}\n" for name, kind, text in rows)


def panels_of(dashboard):
    """The panels that show data."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries_of_panel(panel):
    return [target["expr"] for target in panel["targets"]]


def queries_of(dashboard):
    for panel in panels_of(dashboard):
        yield from queries_of_panel(panel)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


# Bounds of alerts that a panel shows: the expression in the rule, and the panel's query.
SHOWN_BOUNDS = {
    "> 900": "tubed_tube_oldest_ready_job_age_seconds",
    "> 0.05": "tubed_loop_turn_seconds_bucket",
    "> 0.2": "tubed_journal_commit_seconds_bucket",
    "> 0.8 * tubed_job_memory_limit_bytes": "/ tubed_job_memory_limit_bytes",
    "> 0.8 * tubed_descriptor_limit": "/ tubed_descriptor_limit",
    "[30m]) > 2": "changes(tubed_start_time_seconds",
    "> 60": "tubed_cluster_node_silence_seconds",
    "> 0.5 * tubed_cluster_raft_log_limit_bytes": "/ tubed_cluster_raft_log_limit_bytes",
}


class Rules(unittest.TestCase):
    def test_promtool_accepts_the_rules(self):
        code, output = promtool("check", "rules", RULES)
        self.assertEqual(code, 0, output)

    def test_each_alert_fires_as_intended(self):
        code, output = promtool("test", "rules", RULES_TEST)
        self.assertEqual(code, 0, output)
        alerts = re.findall(r"- alert: (\w+)$", RULES.read_text(encoding="utf-8"), re.M)
        tested = re.findall(r"^  - name: (\w+)$", RULES_TEST.read_text(encoding="utf-8"), re.M)
        self.assertEqual(alerts, [name for name in alerts if name in tested])
        self.assertEqual(len(tested), len(alerts))

    def test_a_wrong_bound_fails_the_tests(self):
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            for right, wrong in (("> 900", "> 9000"), ("for: 15m", "for: 45m"), ("0.8 *", "0.9 *")):
                text = RULES.read_text(encoding="utf-8")
                self.assertIn(right, text)
                (scratch / RULES.name).write_text(text.replace(right, wrong), encoding="utf-8")
                test = RULES_TEST.read_text(encoding="utf-8")
                (scratch / "test.yml").write_text(test.replace("../prometheus/", ""),
                                                  encoding="utf-8")
                code, output = promtool("test", "rules", scratch / "test.yml")
                self.assertNotEqual(code, 0, output)


class Names(DaemonTest):
    def setUp(self):
        super().setUp()
        journal = self.directory / "journal"
        journal.mkdir()
        # With TLS, since some metrics are only then on the page.
        issued = certificates.Authority(self.directory).issue("server")
        config = self.write_config(f"""
[[listen]]
address = "127.0.0.1:0"
tls = {{ certificate = "{issued.certificate}", key = "{issued.key}" }}
""")
        daemon = self.start("--config", config, "--http-listen", "127.0.0.1:0", "-b", str(journal),
                            listen=None)
        with urllib.request.urlopen(f"http://{daemon.http_addresses[0]}/metrics",
                                    timeout=SECONDS) as answer:
            self.page = answer.read().decode() + cluster_page()
        self.dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))

    def test_all_names_are_on_the_page(self):
        self.assertEqual(unknown_names(RULES.read_text(encoding="utf-8"), self.page), set())
        queries = "\n".join(queries_of(self.dashboard))
        self.assertGreater(len(re.findall(r"\btubed_", queries)), 40)
        self.assertEqual(unknown_names(queries, self.page), set())
        self.assertEqual(unknown_names("rate(tubed_loop_turn_seconds[1m]) > tubed_jobs + tubed_job",
                                       self.page), {"tubed_loop_turn_seconds", "tubed_job"})

    def test_prometheus_accepts_every_query(self):
        queries = [re.sub(r"\$__rate_interval", "5m", query) for query in queries_of(self.dashboard)
                   if not query.startswith("label_values(")]
        rules = {"groups": [{"name": "queries", "rules": [
            {"record": f"query:{i}", "expr": query} for i, query in enumerate(queries)]}]}
        path = self.directory / "queries.yml"
        path.write_text(json.dumps(rules), encoding="utf-8")  # JSON is also YAML
        code, output = promtool("check", "rules", path)
        self.assertEqual(code, 0, output)

    def test_every_metric_of_the_server_has_a_panel(self):
        families = re.findall(r"^# TYPE (tubed_\w+) ", self.page, re.M)
        queries = "\n".join(query for panel in panels_of(self.dashboard)
                            for query in queries_of_panel(panel))
        without = {name for name in families
                   if not re.search(rf"\b{name}(_bucket)?\b", queries)}
        # Sizes and numbers that are constant over time, or that another metric has for each tube.
        self.assertEqual(without, {
            "tubed_urgent_jobs", "tubed_jobs_put_total", "tubed_job_size_limit_bytes",
            "tubed_tubes", "tubed_watches", "tubed_journal_oldest_segment",
            "tubed_journal_current_segment", "tubed_tube_paused",
            "tubed_tube_waiting_connections"})

    def test_each_panel_has_a_description(self):
        for panel in panels_of(self.dashboard):
            self.assertRegex(panel.get("description", ""), r"^\w.{20,}\.$", panel["title"])

    def test_each_panel_has_thresholds(self):
        for panel in panels_of(self.dashboard):
            thresholds = panel["fieldConfig"]["defaults"]["thresholds"]
            self.assertEqual(thresholds["mode"], "absolute", panel["title"])
            values = [step["value"] for step in thresholds["steps"]]
            self.assertIsNone(values[0], panel["title"])
            self.assertEqual(values[1:], sorted(values[1:]), panel["title"])
            # A graph shows thresholds only if it is configured to.
            if panel["type"] == "timeseries" and len(values) > 1:
                style = panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]
                self.assertEqual(style, {"mode": "dashed"}, panel["title"])

    def test_thresholds_are_the_bounds_of_the_alerts(self):
        rules = RULES.read_text(encoding="utf-8")
        for bound, part in SHOWN_BOUNDS.items():
            self.assertIn(bound, rules)
            number = float(re.search(r"> ([0-9.]+)", bound)[1])
            # "more than 2" of a counter is 3.
            expected = number + 1 if part.startswith("changes(") else number
            panels = [panel for panel in panels_of(self.dashboard) if panel["type"] != "heatmap"
                      and any(part in query for query in queries_of_panel(panel))]
            self.assertTrue(panels, part)
            for panel in panels:
                steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
                self.assertIn(expected, [step["value"] for step in steps], panel["title"])

    def test_flags_are_shown_as_words(self):
        flags = re.findall(r"^# HELP (tubed_(?!tube_)\w+) 1 while", self.page, re.M)
        self.assertEqual(set(flags), {"tubed_draining", "tubed_journal_full",
                                      "tubed_cluster_raft_log_full"})
        for name in flags:
            panels = [panel for panel in panels_of(self.dashboard)
                      if any(re.search(rf"\b{name}\b", query)
                             for query in queries_of_panel(panel))]
            self.assertTrue(panels, name)
            for panel in panels:
                words = {value: word["text"]
                         for mapping in panel["fieldConfig"]["defaults"]["mappings"]
                         for value, word in mapping["options"].items()}
                self.assertEqual(words.keys(), {"0", "1"}, panel["title"])

    def test_panels_do_not_overlap(self):
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
