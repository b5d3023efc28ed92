#!/bin/sh
# Fetches the jars that pom.xml names into lib/ and compiles the application.
# Runs in a scratch copy of this folder.
set -eu
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib -DincludeScope=runtime
mkdir -p classes
javac -nowarn -proc:none -d classes -cp 'lib/*' *.java
