#!/bin/sh
exec npx tsx app.mts
