"""The server around both examples: who shows a good access token is told who that is."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve(user_of):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            scheme, _, token = self.headers.get("Authorization", "").partition(" ")
            user = user_of(token) if scheme.lower() == "bearer" else None
            self.send_response(401 if user is None else 200)
            if user is None:
                self.send_header("WWW-Authenticate", "Bearer")
            self.end_headers()
            if user is not None:
                self.wfile.write(json.dumps({"user": user}).encode())

        def log_message(self, *_args):
            """Says nothing."""

    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8081"))), Handler).serve_forever()
