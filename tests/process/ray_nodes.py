"""A cluster of Ray as a process: node processes of this machine, which come and go by lines on stdin.

Each line is answered by one: `add` a node of one processor, `remove` the latest, `behead` what all depend on.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

TOKEN = secrets.token_hex(32)
"""One for all tests of a process: Ray reads it once."""


class Nodes:
    """The cluster of a process that runs `main`."""

    def __init__(self, processors: int, mode: str) -> None:
        command = [sys.executable, __file__, str(processors)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RAY_AUTH_MODE": mode},
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "done\n"

    def close(self) -> None:
        self.process.communicate()

    def actors(self) -> list[int]:
        """Return the processes of actors, by /proc."""
        parents: dict[int, int] = {}
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                pid, words = int(folder.name), (folder / "cmdline").read_bytes()
                parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has just ended
                continue
            if words.startswith(b"ray::Actor"):
                found.append(pid)

        def is_ours(pid: int) -> bool:
            while pid in parents and pid != self.process.pid:
                pid = parents[pid]
            return pid == self.process.pid

        return sorted(filter(is_ours, found))


def main() -> None:
    """Start the head, which has as many processors as the argument says, and show its address."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": int(sys.argv[1]), "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = []
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line == "add\n":
            nodes.append(cluster.add_node(num_cpus=1))
        elif line == "remove\n":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        elif line == "behead\n":
            cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        print("done", flush=True)


if __name__ == "__main__":
    main()
