"""A cluster of Ray as a process: node processes of this machine, which come and go by lines on stdin.

Each line is answered by one: `add` a node of one processor, `remove` the latest, `behead` what all depend on.
"""

import sys

from ray.cluster_utils import Cluster


def main() -> None:
    """Start the head, which has as many processors as the argument says, and show its address."""
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
