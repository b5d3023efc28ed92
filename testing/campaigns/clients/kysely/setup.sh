#!/bin/sh
set -e
npm install --silent --no-audit --no-fund kysely@0.29.9 mysql2@3.24.6
