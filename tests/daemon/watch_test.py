"""tls.watch and auth.watch on the real daemon: files that change without a reload, as certificate
managers and Kubernetes change them. The connections that are open stay.
"""

import os
import pathlib
import re
import shutil
import textwrap
import unittest

from certificates import Authority
from harness import preloaded, tls_context, until, write_tokens
from tls_tests import LOCALHOST, TlsTest, table

TOKENS = {"web-1": "tbd_token-of-web-1", "web-2": "tbd_token-of-web-2"}
WATCH = "tls.watch = true\nauth.watch = true\n"


def subject(client):
    return dict(client.tls.getpeercert()["subject"][0])["commonName"]


class Volume:
    """A directory that changes as the kubelet changes that of a Secret: the files are links into
    `..data`, a link to a directory of this version, and a rename replaces that link."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir()
        self.version = 0

    def update(self, files, swap=True):
        """`files`: the sources by name. Files keep their modes."""
        self.version += 1
        fresh = self.path / f"..2026_11_28_{self.version}"
        fresh.mkdir()
        for name, source in files.items():
            shutil.copy(source, fresh / name)
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(f"..data/{name}")
        if swap:
            self.swap(fresh)

    def swap(self, fresh):
        data, temporary = self.path / "..data", self.path / "..data_tmp"
        old = os.readlink(data) if data.is_symlink() else None
        temporary.symlink_to(fresh.name)
        os.rename(temporary, data)
        if old:
            shutil.rmtree(self.path / old)

    def __truediv__(self, name):
        return self.path / name


class WatchTest(TlsTest):
    def issue(self, name):
        return self.authority.issue(name, names=LOCALHOST)

    def pair(self, one, **others):
        return {"tls.crt": one.certificate, "tls.key": one.key, **others}

    def settings(self, directory, **keys):
        return WATCH + table("[[listen]]", {
            "address": "127.0.0.1:0", "tls.certificate": directory / "tls.crt",
            "tls.key": directory / "tls.key", **keys})

    def serve_watched(self, text):
        return self.start("--config", self.write_config(text), listen=None)

    def put_pair(self, directory, one):
        """Replaces both files by renames, the key first."""
        for source, name in ((one.key, "tls.key"), (one.certificate, "tls.crt")):
            self.put_file(source, directory / name)

    @staticmethod
    def put_file(source, path):
        shutil.copy(source, f"{path}.new")
        os.replace(f"{path}.new", path)


class Certificates(WatchTest):
    def test_a_pair_that_is_replaced(self):
        directory = self.directory / "tls"
        directory.mkdir()
        self.put_pair(directory, self.issue("one"))
        daemon = self.serve_watched(self.settings(directory))
        old = self.connect_tls(daemon)
        self.assertEqual(subject(old), "one")
        job = old.put()
        old.reserve()
        for count, name in enumerate(("two", "three"), 1):
            self.put_pair(directory, self.issue(name))
            line = daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ", count)
            self.assertIn('note="the files have changed"', line)
            self.assertEqual(subject(self.connect_tls(daemon)), name)
        self.assertEqual(old.ask(f"delete {job}"), "DELETED")

    def test_a_half_written_pair_is_logged_once_and_then_completed(self):
        directory = self.directory / "tls"
        directory.mkdir()
        one, two = self.issue("one"), self.issue("two")
        self.put_pair(directory, one)
        daemon = self.serve_watched(self.settings(directory))
        self.put_file(two.certificate, directory / "tls.crt")
        line = daemon.wait_for_line(" error not reloaded ")
        self.assertIn(f"{directory}/tls.key: not the key of {directory}/tls.crt", line)
        self.assertIn('note="the old files stay in force"', line)
        self.assertEqual(subject(self.connect_tls(daemon)), "one")
        # The same mistake again; what it is noticed with comes after it in the log.
        self.put_file(two.certificate, directory / "tls.crt")
        broken = self.directory / "broken"
        broken.write_text("no certificate\n", encoding="utf-8")
        self.put_file(broken, directory / "tls.crt")
        self.assertIn("no certificate in PEM", daemon.wait_for_line(" error not reloaded ", 2))
        self.assertEqual(len(daemon.lines_with("not the key of")), 1)
        self.assertEqual(subject(self.connect_tls(daemon)), "one")
        self.put_pair(directory, two)
        daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ")
        self.assertEqual(subject(self.connect_tls(daemon)), "two")
        self.assertEqual(len(daemon.lines_with(" error ")), 2)

    def test_a_mistake_that_is_taken_back(self):
        directory = self.directory / "tls"
        directory.mkdir()
        one = self.issue("one")
        self.put_pair(directory, one)
        daemon = self.serve_watched(self.settings(directory))
        (directory / "tls.crt").unlink()
        self.assertIn("cannot read", daemon.wait_for_line(" error not reloaded "))
        self.put_file(one.certificate, directory / "tls.crt")
        daemon.wait_for_line(" info reloaded changed=nothing ")
        self.assertEqual(subject(self.connect_tls(daemon)), "one")

    def test_authorities_and_http(self):
        directory = self.directory / "tls"
        directory.mkdir()
        self.put_pair(directory, self.issue("one"))
        self.put_file(self.authority.ca, directory / "ca.crt")
        http = table("", {"http.listen": "127.0.0.1:0", "http.tls.certificate": directory / "tls.crt",
                          "http.tls.key": directory / "tls.key"})
        daemon = self.serve_watched(http + self.settings(directory, **{
            "tls.client_ca": directory / "ca.crt"}))
        other = Authority(self.directory, name="other CA")
        mine, theirs = (authority.issue("client", client=True) for authority in (self.authority, other))
        context = tls_context(self.authority, mine)
        old = self.connect_tls(daemon, context=context)
        self.assertEqual(old.ask("use a"), "USING a")
        self.put_file(other.ca, directory / "ca.crt")
        daemon.wait_for_line(" info reloaded changed=listen.tls.client_ca ")
        context = tls_context(self.authority, theirs)
        self.assertEqual(self.connect_tls(daemon, context=context).ask("use b"), "USING b")
        with self.assertRaises((OSError, AssertionError)):
            self.connect_tls(daemon, context=tls_context(self.authority, mine)).ask("use b")
        self.assertEqual(old.ask("use c"), "USING c")
        self.put_pair(directory, self.issue("two"))
        daemon.wait_for_line(" info reloaded changed=http.tls.certificate,listen.tls.certificate ")

    def test_a_directory_that_goes_and_comes_back(self):
        directory = self.directory / "mnt" / "tls"
        directory.mkdir(parents=True)
        self.put_pair(directory, self.issue("one"))
        daemon = self.serve_watched(self.settings(directory))
        for count, name in enumerate(("two", "three"), 1):
            shutil.rmtree(self.directory / "mnt")
            daemon.wait_for_line(" error not reloaded ", count)
            self.assertEqual(subject(self.connect_tls(daemon)), "one" if count == 1 else "two")
            directory.mkdir(parents=True)
            self.put_pair(directory, self.issue(name))
            daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ", count)
            self.assertEqual(subject(self.connect_tls(daemon)), name)

    def test_a_reload_begins_and_ends_the_watch(self):
        directory, other = self.directory / "tls", self.directory / "other"
        for path, name in ((directory, "one"), (other, "two")):
            path.mkdir()
            self.put_pair(path, self.issue(name))
        off = self.settings(directory).replace("watch = true", "watch = false")
        daemon = self.serve_watched(off)
        self.put_pair(directory, self.issue("not watched"))
        self.write_config(self.settings(other))
        self.assertIn("auth.watch,tls.watch,listen", self.reload(daemon).replace('"', ""))
        self.assertEqual(subject(self.connect_tls(daemon)), "two")
        self.put_pair(other, self.issue("three"))
        daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ")
        self.assertEqual(subject(self.connect_tls(daemon)), "three")
        watches = self.watches(daemon)
        self.assertGreater(watches, 0)
        self.write_config(self.settings(other).replace("watch = true", "watch = false"))
        self.reload(daemon, 3)
        until("the watches to end", lambda: self.watches(daemon) == 0)

    def watches(self, daemon):
        """The directories that the process watches by inotify."""
        count = 0
        for entry in pathlib.Path(f"/proc/{daemon.pid}/fdinfo").iterdir():
            try:
                count += entry.read_text(encoding="ascii").count("inotify wd:")
            except FileNotFoundError:
                pass
        return count

    def test_watches_do_not_become_more(self):
        volume = Volume(self.directory / "volume")
        one, two = self.issue("one"), self.issue("two")
        volume.update(self.pair(one))
        daemon = self.serve_watched(self.settings(volume))
        self.put_and_wait(daemon, volume, two, 1)
        before = self.watches(daemon)
        for count in range(2, 8):
            self.put_and_wait(daemon, volume, one if count % 2 == 0 else two, count)
        until("the watches of old directories to end", lambda: self.watches(daemon) == before)

    def put_and_wait(self, daemon, volume, one, count):
        volume.update(self.pair(one))
        daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ", count)


class Kubernetes(WatchTest):
    """One volume with a certificate and tokens."""

    def setUp(self):
        super().setUp()
        self.volume = Volume(self.directory / "volume")
        self.tokens = self.directory / "tokens.source"

    def update(self, name, *tokens, **options):
        write_tokens(self.tokens, {token: TOKENS[token] for token in tokens})
        self.volume.update(self.pair(self.issue(name), tokens=self.tokens), **options)

    def serve_volume(self):
        role = table("[[role]]", {"name": "web", "verbs": ["produce", "work", "inspect"],
                                  "tokens": ["web-1", "web-2"]})
        return self.serve_watched(table("", {"auth.tokens": self.volume / "tokens"}) +
                                  self.settings(self.volume, auth="token") + role)

    def login(self, daemon, token):
        client = self.connect_tls(daemon)
        return client, client.ask(f"auth {TOKENS[token]}")

    def test_certificate_and_tokens_swap_together_under_open_connections(self):
        self.update("one", "web-1", "web-2")
        daemon = self.serve_volume()
        kept, reply = self.login(daemon, "web-1")
        self.assertEqual(reply, "AUTHENTICATED")
        revoked, _ = self.login(daemon, "web-2")
        job = kept.put()
        kept.reserve()
        self.update("two", "web-1")
        # The role names a token that the file no longer has.
        self.assertIn("no token web-2", daemon.wait_for_line("check the access files"))
        for changed in ("listen.tls.certificate", "auth.tokens"):
            daemon.wait_for_line(f" info reloaded changed={changed} ")
        self.assertEqual(revoked.rest(), b"")
        self.assertEqual(kept.ask(f"delete {job}"), "DELETED")
        client, reply = self.login(daemon, "web-1")
        self.assertEqual((subject(client), reply), ("two", "AUTHENTICATED"))
        self.assertEqual(self.login(daemon, "web-2")[1], "UNAUTHORIZED")
        self.update("three", "web-1", "web-2")
        for changed in ("listen.tls.certificate", "auth.tokens"):
            daemon.wait_for_line(f" info reloaded changed={changed} ", 2)
        client, reply = self.login(daemon, "web-2")
        self.assertEqual((subject(client), reply), ("three", "AUTHENTICATED"))
        self.assertEqual(kept.ask("use x"), "USING x")

    def test_a_version_that_is_not_linked_yet_is_not_used(self):
        self.update("one", "web-1")
        daemon = self.serve_volume()
        self.update("two", "web-1", swap=False)
        client, _ = self.login(daemon, "web-1")
        self.assertEqual(subject(client), "one")
        self.volume.swap(self.volume / f"..2026_11_28_{self.volume.version}")
        daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ")
        client, _ = self.login(daemon, "web-1")
        self.assertEqual(subject(client), "two")

    def test_wrong_tokens_do_not_hinder_a_new_certificate(self):
        self.update("one", "web-1")
        daemon = self.serve_volume()
        client, _ = self.login(daemon, "web-1")
        self.tokens.write_text("web-1 nonsense\n", encoding="utf-8")
        self.volume.update(self.pair(self.issue("two"), tokens=self.tokens))
        daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ")
        self.assertIn("tokens:1: expected NAME", daemon.wait_for_line(" error not reloaded "))
        self.assertEqual(client.ask("use x"), "USING x")
        client, reply = self.login(daemon, "web-1")
        self.assertEqual((subject(client), reply), ("two", "AUTHENTICATED"))


class Page(WatchTest):
    def test_the_settings_of_the_page_on_containers(self):
        """The ConfigMap of docs/containers.md, with other places and ports."""
        text = (pathlib.Path(__file__).parents[2] / "docs/containers.md").read_text(encoding="utf-8")
        settings = re.search(r"^  tubed.toml: \|\n((?:    .*\n|\n)+)", text, re.MULTILINE)[1]
        settings = textwrap.dedent(settings)
        tls, tokens = Volume(self.directory / "tls"), Volume(self.directory / "tokens")
        (self.directory / "jobs").mkdir()
        source = write_tokens(self.directory / "source", {"worker-1": TOKENS["web-1"]})
        one, two = self.issue("one"), self.issue("two")
        for mode in (one.key, two.key, source):
            mode.chmod(0o440)
        tls.update(self.pair(one))
        tokens.update({"tokens": source})
        for old, new in (("/etc/tubed-tls", str(tls.path)), ("/etc/tubed-tokens", str(tokens.path)),
                         ("/var/lib/tubed", str(self.directory / "jobs")), ("0.0.0.0:11380", "127.0.0.1:0"),
                         ("0.0.0.0:11301", "127.0.0.1:0"), ("127.0.0.1:11300", "127.0.0.1:0")):
            self.assertIn(old, settings)
            settings = settings.replace(old, new)
        daemon = self.start("--config", self.write_config(settings), listen=None, listeners=2)
        client = self.connect_tls(daemon)
        self.assertEqual(client.ask(f"auth {TOKENS['web-1']}"), "AUTHENTICATED")
        tls.update(self.pair(two))
        daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ")
        self.assertEqual(subject(self.connect_tls(daemon)), "two")
        self.assertEqual(client.ask("use a"), "USING a")
        self.assertEqual(self.connect(daemon, 1).stats("reload"), {"changed": "[]", "needs-restart": "[]"})


class Failures(WatchTest):
    def serve_with(self, watches):
        directory = self.directory / "tls"
        directory.mkdir()
        self.put_pair(directory, self.issue("one"))
        text = self.settings(directory)
        environment = preloaded("few_watches", self.directory) | {"TUBED_WATCHES": str(watches)}
        daemon = self.start("--config", self.write_config(text), listen=None, environment=environment)
        return daemon, directory

    def test_without_inotify_the_server_runs_and_reloads(self):
        for watches, reason in ((-1, "Too many open files"), (0, "No space left on device")):
            with self.subTest(watches):
                daemon, directory = self.serve_with(watches)
                line = daemon.wait_for_line(" warning cannot watch files ")
                for part in ("setting=tls.watch", f"directory={directory}", reason):
                    self.assertIn(part, line.replace('"', ""))
                # The server reads the files again soon after it begins to watch them. It notices a
                # change until then, and reloads.
                self.put_pair(directory, self.issue("two"))
                self.reload(daemon)
                until("the new certificate",
                      lambda: subject(self.connect_tls(daemon)) == "two")
                self.reload(daemon, 2)
                daemon.wait_for_line("cannot watch files", 3)
                self.end(daemon)
                # A reload, which arms the watches again, reports it again, once.
                self.assertEqual(len(daemon.lines_with("cannot watch files")),
                                 1 + len(daemon.lines_with(" info reloaded ")))
                shutil.rmtree(directory)

    def test_a_directory_beyond_the_limit(self):
        """The others are watched all the same."""
        volume = Volume(self.directory / "volume")
        volume.update(self.pair(self.issue("one")))
        environment = preloaded("few_watches", self.directory) | {"TUBED_WATCHES": "1"}
        daemon = self.start("--config", self.write_config(self.settings(volume)), listen=None,
                            environment=environment)
        self.assertIn("No space left on device", daemon.wait_for_line("cannot watch files"))
        for count, name in enumerate(("two", "three"), 1):
            volume.update(self.pair(self.issue(name)))
            daemon.wait_for_line(" info reloaded changed=listen.tls.certificate ", count)
        self.assertEqual(len(daemon.lines_with("cannot watch files")), 1)


if __name__ == "__main__":
    unittest.main()
