#!/bin/sh
# Runs the checks against the server that the CLIENT_ variables name.
# Exit code 0 only if all of them passed.
exec java -XX:TieredStopAtLevel=1 -Xmx512m -cp 'classes:lib/*:.' Main
