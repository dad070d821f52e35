# SPDX-License-Identifier: Apache-2.0
"""The other end of a scheduler adapter (docs/ADAPTER.md), for tests of adapters."""

import json
import subprocess


class Client:
    """An adapter and one end of the conversation with it."""

    def __init__(self, command, **kwargs):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **kwargs)
        self.hello = self.read()["hello"]
        self.last_id = 0

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def send(self, op, **members):
        self.last_id += 1
        self.process.stdin.write(json.dumps({"id": self.last_id, "op": op, **members}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, op, **members):
        self.send(op, **members)
        answer = self.read()
        assert answer is None or answer["id"] == self.last_id, answer
        return answer

    def job(self, job):
        return self.ask("job", job=job)["job"]

    def expect(self, job):
        r = self.job(job)
        return {"restarts": r["restarts"], "submit": r["submit"], "states": [r["state"]]}

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(30)
