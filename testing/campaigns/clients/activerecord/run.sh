#!/bin/sh
exec ruby app.rb
