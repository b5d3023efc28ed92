"""Runs the checks of an application and prints one line for each.
The exit code is 0 only if all of them passed."""

import os
import sys
import traceback

HOST = os.environ["CLIENT_HOST"]
PORT = int(os.environ["CLIENT_PORT"])
USER = os.environ["CLIENT_USER"]
PASSWORD = os.environ.get("CLIENT_PASSWORD", "")
DATABASE = os.environ["CLIENT_DATABASE"]

_checks = []


def check(function):
    """Registers a check; its name is that of the function."""
    _checks.append(function)
    return function


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def raises(kind, number, function):
    """The error number that the server gives, as the client shows it."""
    try:
        function()
    except kind as error:
        while not (error.args and isinstance(error.args[0], int)) and (
            error.__cause__ or getattr(error, "orig", None)
        ):
            error = getattr(error, "orig", None) or error.__cause__
        equal(error.args[0], number)
        return
    raise AssertionError(f"no error, expected {number}")


def run():
    failed = 0
    for function in _checks:
        name = function.__name__.replace("_", " ")
        try:
            function()
        except Exception as error:
            failed += 1
            why = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"FAIL {name}: {why[:400]}", flush=True)
            if os.environ.get("CLIENT_TRACE"):
                traceback.print_exc()
        else:
            print(f"ok   {name}", flush=True)
    sys.exit(1 if failed else 0)
