#!/bin/sh
# Installs the client library into a virtual environment in the current directory.
# The versions are those of requirements.txt.
set -e
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
