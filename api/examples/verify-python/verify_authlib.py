"""A service that verifies access tokens by their issuer alone, with Authlib and its JOSE library, joserfc."""

import json
import os
import time
from urllib.request import urlopen

from authlib.oauth2.rfc8414 import get_well_known_url
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from server import serve

ISSUER, AUDIENCE = os.environ["ISSUER"], os.environ.get("AUDIENCE", "spillway")
# As long as the issuer lets caches keep its keys: a new key is published for longer before it signs.
KEYS_FOR_S = 300


def fetch(url):
    with urlopen(url) as response:
        return json.load(response)


metadata = fetch(get_well_known_url(ISSUER, external=True))
if metadata["issuer"] != ISSUER:
    raise SystemExit(f"{ISSUER} says that it is {metadata['issuer']}")
claims = jwt.JWTClaimsRegistry(
    iss={"essential": True, "value": ISSUER},
    aud={"essential": True, "value": AUDIENCE},
    exp={"essential": True},
    sub={"essential": True},
)
fetched = {"at": -float("inf"), "keys": KeySet([])}


def keys():
    if time.monotonic() - fetched["at"] > KEYS_FOR_S:
        fetched.update(at=time.monotonic(), keys=KeySet.import_key_set(fetch(metadata["jwks_uri"])))
    return fetched["keys"]


def user_of(token):
    try:
        decoded = jwt.decode(token, keys(), algorithms=metadata["id_token_signing_alg_values_supported"])
        claims.validate(decoded.claims)
        return decoded.claims["sub"]
    except (JoseError, ValueError):
        return None


serve(user_of)
