"""A program as a user of the API writes it, with the client that was generated from the description: registers, logs in, and
asks who that is. It is run by openapi-python.test.ts."""

import sys

from generated import AuthenticatedClient, Client
from generated.api.accounts import get_me, register
from generated.api.sessions import login
from generated.models import Credentials, NewAccount, Problem, Tokens, User

url, email, password = sys.argv[1:]
client = Client(base_url=url)

registered = register.sync(client=client, body=NewAccount(email=email, password=password))
assert isinstance(registered, User), registered

refused = login.sync(client=client, body=Credentials(email=email, password="not the right one"))
assert isinstance(refused, Problem) and refused.code == "invalid_credentials", refused

session = login.sync(client=client, body=Credentials(email=email, password=password))
assert isinstance(session, Tokens), session
me = get_me.sync(client=AuthenticatedClient(base_url=url, token=session.access_token))
assert isinstance(me, User), me
print(me.email)
