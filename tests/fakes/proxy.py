"""A proxy between a client and a server that delays, cuts and freezes connections, in a thread of its own.

`python -m tests.fakes.proxy PORT SERVER_PORT DELAY` runs one from the console: every chunk is delayed by a time drawn
from 0 to DELAY seconds in each direction, order kept.
"""

import asyncio
import contextlib
import random
import sys
import threading
from collections.abc import Awaitable


class Proxy:
    """Listens on a port of its own.

    Attributes:
        port: where it listens.
        delay: longest delay of a chunk in each direction, in seconds.
        connections: how many were made so far.
    """

    def __init__(self, server_port: int, delay: float = 0.0, port: int = 0, seed: int = 1) -> None:
        self.server_port = server_port
        self.delay = delay
        self.connections = 0
        self.is_frozen = False
        self._rng = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", port))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def is_used(self) -> bool:
        """Whether there is a connection."""
        return bool(self._writers)

    def cut(self) -> None:
        """Break all connections without a farewell."""
        self._call(self._cut())

    def freeze(self, is_frozen: bool = True) -> None:
        """Swallow all that comes on connections of now, which stay open; new ones work again once it is thawed."""
        self.is_frozen = is_frozen

    def close(self) -> None:
        """End."""
        self._call(self._cut())
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10.0)

    async def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _end(self) -> None:
        self._server.close()
        await asyncio.sleep(0)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.server_port)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        self._writers -= {writer, far_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand on what comes, each chunk not before its time and not before the one before it."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                at, data = await waiting.get()
                await asyncio.sleep(max(0.0, at - self._loop.time()))
                if not data:
                    break
                if not self.is_frozen:
                    writer.write(data)
                    await writer.drain()
            writer.close()

        task = asyncio.ensure_future(deliver())
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                waiting.put_nowait((self._loop.time() + self._rng.uniform(0.0, self.delay), data))
        waiting.put_nowait((self._loop.time(), b""))
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await task


if __name__ == "__main__":
    proxy = Proxy(int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[1]))
    threading.Event().wait()
