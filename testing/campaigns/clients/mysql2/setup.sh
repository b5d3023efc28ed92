#!/bin/sh
set -e
npm install --silent --no-audit --no-fund mysql2@3.24.6
