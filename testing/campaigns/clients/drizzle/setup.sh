#!/bin/sh
set -e
npm install --silent --no-audit --no-fund drizzle-orm@0.45.4 drizzle-kit@0.31.11 mysql2@3.24.6
