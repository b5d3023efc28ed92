#!/bin/sh
set -e
npm install --silent --no-audit --no-fund typeorm@1.1.1 mysql2@3.24.6 reflect-metadata@0.2.2
