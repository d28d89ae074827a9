"""A small Flask application whose users log in through Spillway: python flask_app.py ADDRESS:PORT"""

import os
import sys

from flask import Flask, jsonify, request
from spillway import Spillway, SpillwayError

app = Flask(__name__)
spillway = Spillway(os.environ["SPILLWAY_URL"], os.environ["SPILLWAY_KEY"])
hashes = {}


@app.post("/register")
def register():
    hashes[request.form["username"]] = spillway.hash(request.form["password"])
    return jsonify(username=request.form["username"]), 201


@app.post("/login")
def login():
    # None for an unknown user: that takes as long, and never matches.
    if not spillway.verify(request.form["password"], lambda: hashes.get(request.form["username"])):
        return jsonify(error="wrong"), 401
    return jsonify(username=request.form["username"])


@app.errorhandler(SpillwayError)
def busy(error):
    if error.retry_after is None:
        raise error
    return jsonify(error="busy"), 503, {"Retry-After": str(error.retry_after)}


if __name__ == "__main__":
    address, port = sys.argv[1].split(":")
    app.run(address, int(port), threaded=True)
