"""The process of a test in place of a prepared one: `python -S -E prepared_client.py SOCKET MODULE [WORD ...]`.

It hands its streams to the prepared process, passes signals on, and ends as that process ends. If the environment needs
one, it becomes a fresh interpreter.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    path, *words = sys.argv[1:]
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    request = {"folder": os.getcwd(), "words": words, "environment": dict(os.environ)}
    socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
    if connection.recv(100) == b"fresh":
        os.execv(sys.executable, [sys.executable, "-m", *words])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: connection.send(bytes([number])))
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):  # whoever reads them sees the end of the prepared process
        os.dup2(nothing, descriptor)
    status = int(connection.recv(100) or -signal.SIGKILL)
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
