#!/bin/sh
exec php app.php
