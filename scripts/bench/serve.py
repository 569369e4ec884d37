"""Puts `infer serve` under load. Started by serve.sh.

Some clients, 64 by default, send one line each and wait for its translation, again and again, over connections of
their own. They are coroutines of this process, which prints its share of the processor: it must be small. The
first seconds are not counted. Every answer must be what `infer translate` prints for that line.

Throughput is lines per second. That of `infer translate` is for the same lines in one file, without its start: the
time for one line is subtracted. CTranslate2 is behind FastAPI as its users write it: a function that tokenizes,
calls translate_batch and detokenizes, on FastAPI's threads. It runs with one worker of T threads and with T workers
of one thread, and the faster counts. The programs run in turn, --rounds times; the median counts.

Memory is the resident memory of the server, when the counted time begins and when it ends.
"""

import argparse
import asyncio
import gzip
import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INFER = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/infer"


# The side of CTranslate2: `python serve.py --peer …` is its server.


def peer(request):
    import ctranslate2
    import fastapi
    import tokenizers
    import uvicorn

    threads, workers = request["threads"], request["workers"]
    translator = ctranslate2.Translator(
        request["model"], inter_threads=workers, intra_threads=max(1, threads // workers)
    )
    tokenizer = tokenizers.Tokenizer.from_file(request["tokenizer"])
    app = fastapi.FastAPI()

    @app.post("/v1/translate")
    def translate(body: dict):
        tokens = tokenizer.encode(body["text"]).tokens
        options = {"beam_size": request["beam"], "max_decoding_length": 256}
        found = translator.translate_batch([tokens], **options)[0].hypotheses[0]
        text = tokenizer.decode([tokenizer.token_to_id(token) for token in found])
        return {"translations": [{"text": text}]}

    uvicorn.run(app, host="127.0.0.1", port=request["port"], log_level="warning")


# The load.


async def client(port, requests, turn, record):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (number := turn()) is not None:
        started = time.monotonic()
        writer.write(requests[number])
        header = await reader.readuntil(b"\r\n\r\n")
        status = int(header.split(b" ", 2)[1])
        length = int(re.search(rb"content-length: *(\d+)", header, re.I).group(1))
        body = await reader.readexactly(length)
        record(number, status, body, started, time.monotonic())
    writer.close()


def load(port, bodies, clients, warm_up, seconds):
    """Answers as (number, status, body, latency, moment), and this process's share of all processors."""
    requests = [
        b"POST /v1/translate HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (port, len(body), body)
        for body in bodies
    ]
    begin = time.monotonic()
    end = begin + warm_up + seconds
    answers = []
    counter = 0

    def turn():
        nonlocal counter
        if time.monotonic() >= end:
            return None
        counter += 1
        return (counter - 1) % len(requests)

    def record(number, status, body, started, ended):
        answers.append((number, status, body, ended - started, ended - begin))

    async def run():
        await asyncio.gather(*(client(port, requests, turn, record) for _ in range(clients)))

    used = time.process_time()
    asyncio.run(run())
    used = time.process_time() - used
    return answers, used / (time.monotonic() - begin) / os.cpu_count()


def resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1024


class Server:
    def __init__(self, command, port, log):
        self.port = port
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} did not start; see {log.name}")
                time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(name, command, port, lines, args, log, expected=None):
    options = {"beam": args.beam} if args.beam else {}
    bodies = [
        json.dumps({"text": line, "sentences": False, "decode": options}).encode()
        for line in lines
    ]
    server = Server(command, port, log)
    # Memory is read in the middle of the load, by a thread that sleeps.
    memory = []
    def watch():
        for moment in (args.warm_up, args.seconds / 2, args.seconds / 2 - 0.5):
            time.sleep(max(0, moment))
            memory.append(resident(server.process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    answers, share = load(port, bodies, args.clients, args.warm_up, args.seconds)
    watcher.join()
    server.stop()
    wrong = [answer for answer in answers if answer[1] != 200]
    if wrong:
        sys.exit(f"{name}: {len(wrong)} answers are not 200: {wrong[0]}")
    if expected is not None:
        for number, _, body, *_ in answers:
            text = json.loads(body)["translations"][0]["text"]
            if text != expected[number]:
                sys.exit(f"{name}: line {number + 1}: {text!r}, not {expected[number]!r}")
    counted = [a for a in answers if args.warm_up <= a[4] < args.warm_up + args.seconds]
    latencies = sorted(answer[3] * 1000 for answer in counted)
    return {
        "lines": len(counted) / args.seconds,
        "p50": latencies[len(latencies) // 2],
        "p99": latencies[len(latencies) * 99 // 100],
        "memory": memory,
        "share": share,
        "answers": len(answers),
    }


def translate(model, text, options):
    started = time.monotonic()
    command = [INFER, "translate", model, *options]
    output = subprocess.run(
        command, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    ).stdout.decode()
    return output.split("\n")[:-1], time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True, help="a run")
    parser.add_argument("--input", required=True, type=Path, help="lines to translate, plain or .gz")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm-up", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--beam", type=int, help="the model's own by default")
    parser.add_argument("--quantize", choices=["int8"])
    parser.add_argument("--least", type=float, default=0, help="fail below this ratio to infer translate")
    parser.add_argument("--no-ctranslate2", action="store_true")
    args = parser.parse_args()

    opened = gzip.open if args.input.suffix == ".gz" else open
    with opened(args.input, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    lines = [line for line in lines if line.strip()]
    beam = ["--beam", str(args.beam)] if args.beam else []
    quantize = ["--quantize", args.quantize] if args.quantize else []
    text = "".join(line + "\n" for line in lines)
    threads = os.cpu_count()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        log = open(folder / "log", "w+")
        systems = ["infer serve"]
        if not args.no_ctranslate2:
            exported = folder / "ctranslate2"
            kind = quantize or []
            command = [INFER, "export", args.model, "--to", "ctranslate2", "-o", exported, *kind]
            subprocess.run(command, check=True, stdout=log, stderr=log)
            hf = folder / "hf"
            command = [INFER, "export", args.model, "--to", "hf", "-o", hf]
            subprocess.run(command, check=True, stdout=log, stderr=log)
            systems += [f"ctranslate2, {w} worker{'s' * (w > 1)}" for w in sorted({1, threads})]
        results = {system: [] for system in systems}
        batch = []
        for _ in range(args.rounds):
            _, start = translate(args.model, lines[0] + "\n", beam + quantize)
            expected, whole = translate(args.model, text, beam + quantize)
            batch.append((len(lines) - 1) / (whole - start))
            for system in systems:
                port = free_port()
                if system == "infer serve":
                    command = [INFER, "serve", f"en-de={args.model}", "--port", str(port), *quantize]
                    result = measure(system, command, port, lines, args, log, expected)
                else:
                    request = {
                        "model": str(exported),
                        "tokenizer": str(hf / "tokenizer.json"),
                        "threads": threads,
                        "workers": int(system.split()[1]),
                        "beam": args.beam or 4,
                        "port": port,
                    }
                    command = [sys.executable, __file__, "--peer", json.dumps(request)]
                    result = measure(system, command, port, lines, args, log)
                results[system].append(result)

    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    print(f"{model.group(1) if model else platform.processor()}, {threads} threads; {len(lines)} lines, "
          f"{args.clients} clients, {args.seconds:g} s, {args.rounds} round(s)")
    translated = statistics.median(batch)
    print(f"{'infer translate':24} {translated:8.1f} lines/s")
    for system, rounds in results.items():
        median = {key: statistics.median(r[key] for r in rounds) for key in ("lines", "p50", "p99", "share")}
        memory = rounds[-1]["memory"]
        print(f"{system:24} {median['lines']:8.1f} lines/s  {median['lines'] / translated:5.2f} of infer translate  "
              f"p50 {median['p50']:6.0f} ms  p99 {median['p99']:6.0f} ms  "
              f"memory {' '.join(f'{m:.0f}' for m in memory)} MB  load {100 * median['share']:.1f}% of the CPU")
    answers = sum(r["answers"] for r in results["infer serve"])
    print(f"all {answers} answers of infer serve are what infer translate prints")
    ratio = statistics.median(r["lines"] for r in results["infer serve"]) / translated
    if ratio < args.least:
        sys.exit(f"the ratio {ratio:.2f} is below {args.least}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(json.loads(sys.argv[2]))
    else:
        main()
