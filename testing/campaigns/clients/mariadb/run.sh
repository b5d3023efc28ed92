#!/bin/sh
exec node app.mjs
