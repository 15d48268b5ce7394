"""A web server under load: webrick, with a thread for each request, and with processes that share the socket."""

import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from bench import PROGRAMS, Skip, equal, expect, family

REQUESTS = 300


def answers(bench, workers, env):
    """What the server answers, and how it ends."""
    command = ["ruby", str(PROGRAMS / "server.rb"), str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=bench.environment(env),
                          cwd=bench.directory) as server:
        port = int(server.stdout.readline())

        def ask(number):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/?n={number}", timeout=30) as answer:
                return answer.read()

        with ThreadPoolExecutor(8) as clients:
            found = list(clients.map(ask, range(REQUESTS)))
        server.terminate()
        _, said = server.communicate(timeout=60)
    return found, server.returncode, said


@family({"threads": (0,), "processes": (3,)})
def webrick(bench, workers):
    if subprocess.run(["ruby", "-rwebrick", "-e", ""], capture_output=True).returncode != 0:
        raise Skip("webrick is not installed")
    wanted = answers(bench, workers, {})
    got = answers(bench, workers, bench.preload("t-%p.ctf", rate="1e-2"))
    equal(got, wanted, "answers, status and messages")
    files = sorted(bench.directory.glob("t-*.ctf"))
    equal(len(files), workers + 1, "files")
    requests = 0
    for file in files:
        bench.sound(file.name)
        requests += sum(1 for it in bench.allocs(file.name) if any("server.rb:5:" in frame for frame in it.frames))
    expect(requests > 0, "no sample of a request's own work")
