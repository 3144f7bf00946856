#!/usr/bin/env python3
"""Validates docs/reference/openapi.yaml with an npm package that is installed into --npm-dir.

  openapi_test.py --generator build/dev/tools/docs/tubed-generate-docs --npm-dir DIR openapi.yaml
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import run_client  # noqa: E402

SECONDS = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", required=True, help="the program tubed-generate-docs")
    parser.add_argument("--npm-dir", type=pathlib.Path, required=True)
    parser.add_argument("description", type=pathlib.Path)
    options = parser.parse_args()
    try:
        run_client.install_from_npm(options.npm_dir, HERE / "package.json")
    except AssertionError as error:
        print(f"openapi_test: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="tubed-openapi-") as directory:
        json_path = pathlib.Path(directory) / "openapi.json"
        with json_path.open("wb") as stream:
            subprocess.run([options.generator, "--openapi-json"], stdout=stream, check=True,
                           timeout=SECONDS)
        command = ["node", HERE / "validate_openapi.mjs", options.npm_dir, options.description,
                   json_path]
        return subprocess.run(command, timeout=SECONDS, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
