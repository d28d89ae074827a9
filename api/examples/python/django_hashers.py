"""
Django's PASSWORD_HASHERS over Spillway: hashing leaves the processes of Django.

    PASSWORD_HASHERS = [
        "django_hashers.Argon2",
        "django_hashers.PBKDF2",
        "django_hashers.BCryptSHA256",
        "django_hashers.Scrypt",
    ]
    MIDDLEWARE = [..., "django_hashers.BusyMiddleware"]
    AUTHENTICATION_BACKENDS = ["django_hashers.CurrentPassword"]
    SPILLWAY_URL = "http://spillway-service-api"
    SPILLWAY_KEY = os.environ["SPILLWAY_KEY"]

New hashes are argon2id in Django's own form, so that the way back is to put Django's hashers in again. Users whose hashes
are of another algorithm log in as before, and have argon2id from then on.
"""

from functools import cache

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import (
    BasePasswordHasher,
    check_password,
    get_hasher,
    identify_hasher,
    is_password_usable,
    mask_hash,
)
from django.http import JsonResponse

from spillway import Spillway, SpillwayError

POLICY = {"algorithm": "argon2id", "memoryKib": 19456, "time": 2, "parallelism": 1}


@cache
def spillway():
    return Spillway(settings.SPILLWAY_URL, settings.SPILLWAY_KEY)


class Argon2(BasePasswordHasher):
    algorithm = "argon2"

    def salt(self):
        # A worker makes its own.
        return "unused"

    def encode(self, password, salt):
        return self.algorithm + spillway().hash(password, **POLICY)

    def verify(self, password, encoded):
        return spillway().verify(password, lambda: encoded)

    def must_update(self, encoded):
        cost = "m={memoryKib},t={time},p={parallelism}".format(**POLICY)
        return not encoded.startswith(f"argon2$argon2id$v=19${cost}$")

    def harden_runtime(self, password, encoded):
        """Nothing: a wrong password takes as long as the hash that it is compared with."""

    def safe_summary(self, encoded):
        algorithm, _, rest = encoded.partition("$")
        return {"algorithm": algorithm, "hash": mask_hash(rest)}


class _Verified(Argon2):
    """An algorithm of stored hashes that are verified, and replaced at the next login."""

    def encode(self, password, salt):
        raise NotImplementedError(f"{self.algorithm} is verified only: put Argon2 first in PASSWORD_HASHERS")


class PBKDF2(_Verified):
    algorithm = "pbkdf2_sha256"


class BCryptSHA256(_Verified):
    algorithm = "bcrypt_sha256"


class Scrypt(_Verified):
    algorithm = "scrypt"


class CurrentPassword(ModelBackend):
    """Logs nobody in by a password that was changed while it was verified, and lets its new hash replace no newer one."""

    def authenticate(self, request, username=None, password=None, **credentials):
        users = get_user_model()._default_manager
        name = username if username is not None else credentials.get(get_user_model().USERNAME_FIELD)
        user = users.filter(**{get_user_model().USERNAME_FIELD: name}).first()
        # Without a user None is verified: that takes as long, and never matches.
        encoded = None if user is None else user.password
        while password is not None and self._matches(password, encoded):
            current = users.filter(pk=user.pk).values_list("password", flat=True).first()
            if current == encoded:
                user.password = self._upgraded(users, user, password)
                return user if self.user_can_authenticate(user) else None
            encoded = current
        return None

    def _matches(self, password, encoded):
        if encoded is None or not is_password_usable(encoded):
            return spillway().verify(password, lambda: None)
        return check_password(password, encoded)

    def _upgraded(self, users, user, password):
        hasher = get_hasher()
        if identify_hasher(user.password).algorithm == hasher.algorithm and not hasher.must_update(user.password):
            return user.password
        encoded = hasher.encode(password, hasher.salt())
        replaced = users.filter(pk=user.pk, password=user.password).update(password=encoded)
        return encoded if replaced else user.password


class BusyMiddleware:
    """Answers 503 with Retry-After where Spillway does, instead of 500."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_exception(self, request, exception):
        if not isinstance(exception, SpillwayError) or exception.retry_after is None:
            return None
        return JsonResponse({"error": "busy"}, status=503, headers={"Retry-After": str(exception.retry_after)})
