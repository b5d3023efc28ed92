#!/bin/sh
set -e
npm install --silent --no-audit --no-fund mariadb@3.5.4
