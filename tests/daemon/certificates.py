"""A certificate authority for tests: makes certificates with openssl(1) when a test needs them.

  authority = Authority(directory)
  server = authority.issue("server", names=("DNS:localhost", "IP:127.0.0.1"))
  client = authority.issue("worker 1", names=("URI:spiffe://queue/worker",), client=True)
  # server.certificate and server.key are PEM files, and authority.ca is the file to trust
  between = authority.intermediate()  # its certificates come with the intermediate's
  expired = authority.issue("server", names=("DNS:localhost",), not_after=days_from_now(-1))
"""

import dataclasses
import datetime
import os
import pathlib
import subprocess

from harness import SECONDS

CONFIGURATION = """
[ca]
database = {directory}/database
new_certs_dir = {directory}
serial = {directory}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = none
[none]
"""


def days_from_now(days):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


@dataclasses.dataclass
class Issued:
    certificate: pathlib.Path  # followed by the certificates of intermediate authorities
    key: pathlib.Path  # mode 0600


class Authority:
    """A certificate authority. Its files and the issued files are in `directory`."""

    def __init__(self, directory, name="test CA", issuer=None):
        self.directory = pathlib.Path(directory) / name.replace(" ", "-")
        self.directory.mkdir(parents=True)
        self.issuer = issuer
        self.issued = 0
        (self.directory / "database").write_text("", encoding="utf-8")
        (self.directory / "serial").write_text("1000\n", encoding="utf-8")
        self.configuration = self.directory / "openssl.cnf"
        self.configuration.write_text(CONFIGURATION.format(directory=self.directory),
                                      encoding="utf-8")
        extensions = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
        if issuer:
            self.own = issuer.sign(name, extensions, "ec", days_from_now(-1), days_from_now(30))
        else:
            self.own = self.sign(name, extensions, "ec", days_from_now(-1), days_from_now(30),
                                 self_signed=True)
        self.ca = issuer.ca if issuer else self.own.certificate

    def intermediate(self, name="intermediate CA"):
        """Returns an authority whose certificate this authority has signed, with the same `ca`."""
        return Authority(self.directory, name, issuer=self)

    def issue(self, name, names=(), client=False, days=10, not_before=None, not_after=None,
              key="ec"):
        """Issues a certificate with the common name `name` and the alternative names `names`
        ("DNS:…", "IP:…", "email:…", "URI:…"), for a server or a client, with a new key: "ec"
        (P-256) or "rsa" (2048 bits). Its dates are aware datetimes; by default it is valid now."""
        usage = "clientAuth" if client else "serverAuth"
        extensions = f"basicConstraints=CA:FALSE\nextendedKeyUsage={usage}\n"
        if names:
            extensions += f"subjectAltName={','.join(names)}\n"
        not_after = not_after or days_from_now(days)
        not_before = not_before or min(days_from_now(-1), not_after - datetime.timedelta(days=30))
        return self.sign(name, extensions, key, not_before, not_after)

    def sign(self, name, extensions, key, not_before, not_after, self_signed=False):
        self.issued += 1
        stem = self.directory / f"{self.issued}"
        files = Issued(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, extension_file = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        extension_file.write_text(extensions, encoding="utf-8")
        kind = {"ec": ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
                "rsa": ("-newkey", "rsa:2048")}[key]
        openssl("req", "-config", self.configuration, *kind, "-nodes", "-subj",
                "/CN=" + name.replace("/", r"\/"),
                "-keyout", files.key, "-out", request)
        os.chmod(files.key, 0o600)
        signer = (("-selfsign", "-keyfile", files.key) if self_signed else
                  ("-cert", self.own.certificate, "-keyfile", self.own.key))
        openssl("ca", "-config", self.configuration, "-name", "ca", "-batch", "-notext", *signer,
                "-startdate", not_before.strftime("%Y%m%d%H%M%SZ"),
                "-enddate", not_after.strftime("%Y%m%d%H%M%SZ"),
                "-extfile", extension_file, "-in", request, "-out", files.certificate)
        if self.issuer:  # the chain, without the root
            with open(files.certificate, "a", encoding="utf-8") as chain:
                chain.write(self.own.certificate.read_text(encoding="utf-8"))
        return files
