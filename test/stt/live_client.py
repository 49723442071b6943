"""A third-party client of /ws/stt: Debian's python3-websockets.

Sends a file of mu-law octets in real time, then stops the session. Prints each received message as one line of JSON, and
the close code. Arguments: URL, file.
"""

import asyncio
import json
import sys

import websockets

CHUNK_BYTES = 480
CHUNK_S = 0.06


async def main(url: str, path: str) -> None:
    with open(path, "rb") as file:
        audio = file.read()
    async with websockets.connect(url) as socket:
        started = asyncio.Event()
        connected = asyncio.Semaphore(0)

        async def listen() -> None:
            async for frame in socket:
                print(frame, flush=True)
                kind = json.loads(frame)["type"]
                if kind == "connected":
                    connected.release()
                elif kind == "session_started":
                    started.set()

        listening = asyncio.create_task(listen())
        await connected.acquire()
        await connected.acquire()
        start = {"type": "start", "languages": ["en"], "config": {"encoding": "mulaw", "sample_rate": 8000}}
        await socket.send(json.dumps(start))
        await started.wait()
        clock = asyncio.get_running_loop()
        began = clock.time()
        for number, offset in enumerate(range(0, len(audio), CHUNK_BYTES), start=1):
            await socket.send(audio[offset : offset + CHUNK_BYTES])
            await asyncio.sleep(max(0.0, began + number * CHUNK_S - clock.time()))
        await socket.send(json.dumps({"type": "stop"}))
        await listening
        print(json.dumps({"type": "closed", "code": socket.close_code}), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2]))
