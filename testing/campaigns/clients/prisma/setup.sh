#!/bin/sh
# The schema engine is a binary that the registry does not have; generating a client does not run it.
set -e
npm install --silent --no-audit --no-fund prisma@7.10.0 @prisma/client@7.10.0 @prisma/adapter-mariadb@7.10.0 tsx
PRISMA_SCHEMA_ENGINE_BINARY=/bin/true npx prisma generate >/dev/null
