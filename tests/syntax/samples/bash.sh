#!/bin/bash
source a.sh
K=1
# Doc of f.
f() {
  echo "a"
  g "$1"
  local x=1
}
function h {
  f
}
h
