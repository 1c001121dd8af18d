"""Flags of commands that can work on a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from yomi.engine.arguments import add_old_names, add_value
from yomi.engine.cli.parser import CliError, require_package

if TYPE_CHECKING:
    from yomi.engine.clusters.actors import ClusterOptions


def add_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cluster")
    text = "work on a Ray cluster: auto (this machine's), local (a new one), or HOST:PORT"
    group.add_argument("--cluster", metavar="ADDRESS", help=text)
    if not {"--processes", "--at-once"} & set(parser._option_string_actions):  # the others also divide this machine
        text = "use this many processes of the cluster (default: as many as fit)"
        group.add_argument("--processes", dest="actors", type=int, metavar="N", help=text)
    cores = add_value(group, "--cores-per-process", 1.0, "N", "reserve this many cores for each process")
    add_old_names(group, cores, "--actor-cpus")
    gpus = add_value(group, "--gpus-per-process", 0.0, "N", "reserve this many GPUs (or a part) for each process")
    add_old_names(group, gpus, "--actor-gpus")
    text = "use a cluster that runs code of anyone who can reach it"
    group.add_argument("--insecure", action="store_true", help=text)


def asked_cluster(args: argparse.Namespace, processes: int | None = None) -> ClusterOptions | None:
    """Return the cluster that the flags name, with this number of processes (None: as many as fit).

    Raises:
        CliError: the flags contradict each other, or Ray is not installed.
    """
    cores, gpus, actors = args.cores_per_process, args.gpus_per_process, getattr(args, "actors", None)
    processes = processes if actors is None else actors
    if args.cluster is None:
        if (cores, gpus, args.insecure, actors) != (1.0, 0.0, False, None):
            more = ", --processes" if "actors" in args else ""
            raise CliError(f"--cores-per-process, --gpus-per-process, --insecure{more}: expected --cluster with them")
        return None
    if getattr(args, "task", None) is not None:
        raise CliError("--cluster with --task: expected one of them, as a cluster shares the work by itself")
    if (processes is not None and processes < 1) or cores < 0 or gpus < 0:
        flags = "--processes, --cores-per-process, --gpus-per-process"
        raise CliError(f"{flags}: expected at least one process, and no negative numbers")
    if not cores + gpus:
        raise CliError("--cores-per-process 0 --gpus-per-process 0: expected a core or a GPU for each process")
    require_package("ray", "--cluster")
    from yomi.engine.clusters.actors import ClusterOptions  # other starts do not need it

    return ClusterOptions(args.cluster, processes, cores, gpus, args.insecure)
