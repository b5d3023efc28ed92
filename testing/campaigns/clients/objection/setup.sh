#!/bin/sh
set -e
npm install --silent --no-audit --no-fund objection@3.1.5 knex@3.3.0 mysql2@3.24.6
