#!/bin/sh
# Fetches the modules that go.mod names and builds the application.
# Runs in a scratch copy of this folder.
set -eu
go mod download
go build -o application .
