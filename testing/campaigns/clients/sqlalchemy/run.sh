#!/bin/sh
# Runs the application against the server that the CLIENT_ variables name.
# Its exit code is 0 only if all checks passed.
exec venv/bin/python application.py
