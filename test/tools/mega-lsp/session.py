"""session.py MEGA-LSP-SERVER: one editor's session with the language server.

Opens a good model and one with a mistake, asks what is under the cursor, and
prints what the server says: one line per thing worth knowing.
"""
import json
import subprocess
import sys

GOOD = """\
!x = tensor<?x?x8xf32>
!w = tensor<8x8xf32>
tfm.block @layer(%x: !x) -> !x {
  %w = tfm.param "w" init(ones) : !w
  %y = tfm.linear %x, %w : !x, !w -> !x
  tfm.yield %y : !x
}
"""
BAD = GOOD.replace("!w = tensor<8x8xf32>", "!w = tensor<8x7xf32>")


class Client:
    def __init__(self, server):
        self.process = subprocess.Popen([server], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.number = 0

    def send(self, method, params, request=False):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self.number += 1
            message["id"] = self.number
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            sys.exit("the server closed its output")
        return json.loads(self.process.stdout.read(length))

    def request(self, method, params):
        self.send(method, params, request=True)
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                return message["result"]

    def open(self, uri, text):
        """The diagnostics of a document."""
        self.send("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": "mlir", "version": 1, "text": text}})
        while True:
            message = self.receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                return message["params"]["diagnostics"]


def main(server):
    client = Client(server)
    capabilities = client.request("initialize", {
        "processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
    print("hover", capabilities["hoverProvider"])
    client.send("initialized", {})
    print("good:", len(client.open("file:///good.mlir", GOOD)), "diagnostics")
    for found in client.open("file:///bad.mlir", BAD):
        print(f"bad: line {found['range']['start']['line'] + 1}: {found['message']}")
    at = {"textDocument": {"uri": "file:///good.mlir"},
          "position": {"line": 4, "character": 24}}  # %w in the linear
    [definition] = client.request("textDocument/definition", at)
    print("definition: line", definition["range"]["start"]["line"] + 1)
    at["position"] = {"line": 4, "character": 10}
    print("hover:", client.request("textDocument/hover", at)["contents"]["value"])
    client.request("shutdown", None)
    client.send("exit", None)
    print("exit", client.process.wait(timeout=20))


if __name__ == "__main__":
    main(*sys.argv[1:])
