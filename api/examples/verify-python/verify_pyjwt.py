"""A service that verifies access tokens by their issuer alone, with PyJWT."""

import json
import os
from urllib.request import urlopen

import jwt
from server import serve

ISSUER, AUDIENCE = os.environ["ISSUER"], os.environ.get("AUDIENCE", "spillway")

with urlopen(f"{ISSUER}/.well-known/openid-configuration") as response:
    metadata = json.load(response)
if metadata["issuer"] != ISSUER:
    raise SystemExit(f"{ISSUER} says that it is {metadata['issuer']}")
keys = jwt.PyJWKClient(metadata["jwks_uri"])


def user_of(token):
    try:
        key = keys.get_signing_key_from_jwt(token)
        # The algorithm is the key's own, whatever the token says.
        claims = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=AUDIENCE,
            issuer=ISSUER,
            options={"require": ["exp", "sub"]},
        )
        return claims["sub"]
    except jwt.PyJWTError:
        return None


serve(user_of)
