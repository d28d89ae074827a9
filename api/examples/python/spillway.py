"""A client of Spillway's service API. It needs the standard library alone."""

import http.client
import json
import threading
import time
from base64 import b64encode
from hashlib import sha256
from urllib.parse import urlsplit


class SpillwayError(Exception):
    """A call that was not answered. `code` is that of the problem (RFC 9457), or `unreachable`."""

    def __init__(self, code, detail, retry_after=None):
        super().__init__(detail)
        self.code = code
        # Seconds after which to try again, where that makes sense.
        self.retry_after = retry_after


class Spillway:
    """Verifies and hashes passwords. Threads may share one: each has a connection of its own."""

    def __init__(self, url, key, timeout=15):
        """`timeout`: how long a call may take, in seconds."""
        self._address = urlsplit(url)
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self._timeout = timeout
        self._local = threading.local()

    def verify(self, password, hash_of):
        """
        Whether a password matches the hash that `hash_of` reads from the database: None for an unknown user, as long a wait and never true.

        The hash is read again after a match, and verified where it is another one: an old password opens no session, although it was
        sent before its change.
        """
        stored_hash = hash_of()
        while True:
            answer = self._call("/v1/passwords/verify", {"password": password, "storedHash": stored_hash})
            if not answer["match"]:
                return False
            stored_hash = hash_of()
            if stored_hash is None:
                return False
            if answer["hashDigest"] == b64encode(sha256(stored_hash.encode()).digest()).decode():
                return True

    def hash(self, password, **policy):
        """A new hash, for instance by `algorithm="argon2id", memoryKib=19456` [the policy of the workers]."""
        body = {"password": password, "policy": policy} if policy else {"password": password}
        return self._call("/v1/passwords/hash", body)["hash"]

    def _call(self, path, body):
        deadline = time.monotonic() + self._timeout
        status, answer = self._post(path, body, deadline)
        # The answer takes longer than a request is held: a ticket is good for it, and is held in the same way.
        while status == 202:
            status, answer = self._post("/v1/tickets/redeem", {"ticket": answer["ticket"]}, deadline)
        return answer

    def _post(self, path, body, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise SpillwayError("timeout", "no answer in time", retry_after=1)
        try:
            response, text = self._exchange(path, json.dumps(body), left)
        except OSError as error:
            raise SpillwayError("unreachable", "Spillway cannot be reached", retry_after=1) from error
        answer = json.loads(text)
        if response.status >= 400:
            retry_after = response.getheader("retry-after")
            raise SpillwayError(answer["code"], answer["detail"], retry_after and int(retry_after))
        return response.status, answer

    def _exchange(self, path, body, timeout):
        kept = getattr(self._local, "connection", None)
        if kept is not None:
            try:
                return self._send(kept, path, body, timeout)
            except (ConnectionError, http.client.RemoteDisconnected):
                # The gateway had closed a connection that was kept; hashing twice does no harm.
                pass
        secure = self._address.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return self._send(connect(self._address.netloc), path, body, timeout)

    def _send(self, connection, path, body, timeout):
        self._local.connection = None
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            connection.request("POST", path, body, self._headers)
            response = connection.getresponse()
            text = response.read()
        except BaseException:
            connection.close()
            raise
        self._local.connection = connection
        return response, text
