"""An agent for tests of the proxy: what it does is its first argument.

    pour IN OUT      writes the file OUT to standard output in pieces of every
                     size, reads standard input to its end, and writes what it
                     read to the file IN
    facts DIR …      writes its environment, arguments and directory to files
    talk             answers as an ACP agent would
    flood PROGRESS   writes 64 MiB, and after each 16 KiB how far it is
    family PIDS      starts a child that ignores standard input, writes both ids
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time


def pour(into, out):
    data = open(out, "rb").read()

    def write():
        at, size = 0, 1
        while at < len(data):
            at += os.write(1, data[at : at + size])
            size = size * 5 % 99_991 + 1

    writer = threading.Thread(target=write)
    writer.start()
    with open(into, "wb") as file:
        while piece := os.read(0, 70_000):
            file.write(piece)
    writer.join()


def facts(directory, *_):
    for name in ("environ", "cmdline"):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(open(f"/proc/self/{name}", "rb").read())
    with open(os.path.join(directory, "cwd"), "w") as file:
        file.write(os.getcwd())


def talk():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        method, params = message["method"], message.get("params") or {}
        result = {}
        if method == "initialize":
            result = {"agentInfo": {"name": "gemini-cli", "version": "9"}}
        elif method == "session/new":
            result = {"sessionId": "s-1", "models": {"currentModelId": "gemini-2.5-pro"}}
        elif method == "session/prompt":
            update = {"method": "session/update", "params": {"sessionId": params["sessionId"]}}
            print(json.dumps(update), flush=True)
            result = {"stopReason": "end_turn", "_meta": {"quota": {"token_count": {"input_tokens": 7, "output_tokens": 2}}}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def flood(progress):
    piece = b"x" * (16 << 10)
    for n in range(4096):
        at = 0
        while at < len(piece):
            at += os.write(1, piece[at:])
        with open(progress + ".new", "w") as file:
            file.write(str((n + 1) * len(piece)))
        os.rename(progress + ".new", progress)


def family(pids):
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback
    child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    with open(pids + ".new", "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    os.rename(pids + ".new", pids)
    time.sleep(600)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
