#!/bin/sh
set -e
npm install --silent --no-audit --no-fund @mikro-orm/core@6.6.16 @mikro-orm/mysql@6.6.16 @mikro-orm/migrations@6.6.16
