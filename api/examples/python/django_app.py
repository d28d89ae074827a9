"""A small Django application whose users log in through Spillway: python django_app.py ADDRESS:PORT"""

import os
import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    SECRET_KEY=os.urandom(32).hex(),
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE_FILE"]}},
    MIDDLEWARE=["django_hashers.BusyMiddleware"],
    AUTHENTICATION_BACKENDS=["django_hashers.CurrentPassword"],
    PASSWORD_HASHERS=[
        "django_hashers.Argon2",
        "django_hashers.PBKDF2",
        "django_hashers.BCryptSHA256",
        "django_hashers.Scrypt",
    ],
    SPILLWAY_URL=os.environ["SPILLWAY_URL"],
    SPILLWAY_KEY=os.environ["SPILLWAY_KEY"],
)
django.setup()

from django.contrib.auth import authenticate  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.http import JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402


def register(request):
    user = User.objects.create_user(request.POST["username"], password=request.POST["password"])
    return JsonResponse({"username": user.username}, status=201)


def login(request):
    user = authenticate(request, username=request.POST["username"], password=request.POST["password"])
    if user is None:
        return JsonResponse({"error": "wrong"}, status=401)
    return JsonResponse({"username": user.username})


urlpatterns = [path("register", register), path("login", login)]

if __name__ == "__main__":
    execute_from_command_line(["manage", "migrate", "--verbosity", "0"])
    execute_from_command_line(["manage", "runserver", "--noreload", sys.argv[1]])
