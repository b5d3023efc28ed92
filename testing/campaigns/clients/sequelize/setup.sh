#!/bin/sh
set -e
npm install --silent --no-audit --no-fund sequelize@6.37.8 mysql2@3.24.6
