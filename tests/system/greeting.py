# SPDX-License-Identifier: Apache-2.0
"""How a connection between an agent and reknitd begins, for tests that are either."""

import json
import subprocess

PROTOCOL = 2


def seal(program, options, request, **process):
    done = subprocess.run([str(program), *map(str, options)], text=True, capture_output=True, check=True,
                          input=json.dumps(request) + "\n", cwd="/", **process)
    return json.loads(done.stdout)


def greet_reknitd(file, node="n1", ask_with="a1"):
    """As an agent, on a file that speaks lines of text: reknitd's word."""
    word = json.loads(file.readline())["word"]
    file.write(json.dumps({"reknit": PROTOCOL, "ask_with": ask_with, "node": node}) + "\n")
    file.flush()
    assert "sealed" in json.loads(file.readline())
    return word


def greeting_of(sock, word, hello, **members):
    """What reknitd seals, as the other end of a connected socket."""
    host, port = sock.getsockname()[:2]
    return json.dumps({"v": PROTOCOL, "greeting": word, "ask_with": hello["ask_with"], "node": hello["node"],
                       "at": f"{host} port {port}", **members})
