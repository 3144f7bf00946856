"""sslscan finds no weakness of the TLS listeners."""

import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

from harness import SECONDS
from tls_tests import LOCALHOST, Tls, TlsTest, table

GROUPS = {"secp256r1 (NIST P-256)", "secp384r1 (NIST P-384)", "x25519"}
SUITES_OF_1_2 = r"ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305)"
SUITES_OF_1_3 = r"TLS_(AES_(128|256)_GCM|CHACHA20_POLY1305)_SHA(256|384)"


class Scan(TlsTest):
    def scan(self, address):
        self.assertIsNotNone(shutil.which("sslscan"), "not installed: tools/install-deps more")
        done = subprocess.run(["sslscan", "--xml=-", "--show-sigs", "--no-colour", address],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS, check=True)
        return xml.etree.ElementTree.fromstring(done.stdout).find("ssltest")

    def check(self, found, versions=("tls 1.2", "tls 1.3")):
        protocols = {f"{one.get('type')} {one.get('version')}": one.get("enabled")
                     for one in found.iter("protocol")}
        self.assertEqual(len(protocols), 6)
        self.assertEqual({name for name, enabled in protocols.items() if enabled == "1"},
                         set(versions))
        self.assertEqual([one.get("supported") for one in found.iter("renegotiation")], ["0"])
        self.assertNotIn("1", [one.get("supported") for one in found.iter("compression")])
        self.assertNotIn("0", [one.get("supported") for one in found.iter("fallback")])
        heartbleed = [one.get("vulnerable") for one in found.iter("heartbleed")]
        self.assertEqual(set(heartbleed), {"0"})
        ciphers = {(one.get("sslversion"), one.get("cipher")) for one in found.iter("cipher")}
        self.assertGreaterEqual(len(ciphers), 3)
        for version, cipher in ciphers:
            suites = SUITES_OF_1_3 if version == "TLSv1.3" else SUITES_OF_1_2
            self.assertTrue(re.fullmatch(suites, cipher), cipher)
        groups = {one.get("name") for one in found.iter("group")}
        self.assertTrue(groups and groups <= GROUPS, groups)
        signatures = {one.get("name") for one in found.iter("connection-signature-algorithm")}
        self.assertTrue(signatures)
        for name in signatures:
            self.assertRegex(name, r"^(ecdsa_secp256r1_sha256|rsa_pss_rsae_sha(256|384|512))$")

    def test_keys_of_both_kinds(self):
        rsa = self.authority.issue("rsa", names=LOCALHOST, key="rsa")
        daemon = self.serve(self.listen(), self.listen(rsa))
        for address in daemon.addresses:
            self.check(self.scan(address))
        self.assertEqual(self.connect_tls(daemon).ask("list-tube-used"), "USING default")

    def test_1_3_alone(self):
        self.check(self.scan(self.serve(self.listen(min_version="1.3")).addresses[0]),
                   versions=("tls 1.3",))

    def test_http(self):
        daemon = self.start("--config", self.write_config(table("", {
            "http.listen": "127.0.0.1:0", **Tls((self.server,)).keys("http.tls.")})))
        self.check(self.scan(daemon.http_addresses[0]))


if __name__ == "__main__":
    unittest.main()
