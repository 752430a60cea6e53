# What scripts/demo and scripts/test share: check the machine, make .venv, install with visible progress.
# Sourced by bash. Everything lands in .venv; nothing on the system is changed.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
VENV=$ROOT/.venv
DEFAULT_MODEL=qwen2.5-coder-0.5b

say() { printf '== %s\n' "$*"; }

fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  local line
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 1
}

elapsed() { printf '%d min %02d s' $((SECONDS / 60)) $((SECONDS % 60)); }

# find_python: prints the first Python of at least 3.10, or fails. PYTHON=/path/to/python chooses one.
find_python() {
  local name
  for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10 python}; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  fail "Python 3.10 or newer is needed and was not found." \
    "On Debian and Ubuntu: apt-get install python3 python3-venv" \
    "If it lies elsewhere: PYTHON=/path/to/python $0"
}

# need_venv PYTHON: Debian's and Ubuntu's Python comes without the module that makes environments.
need_venv() {
  "$1" -c 'import ensurepip, venv' 2>/dev/null || fail \
    "$1 cannot make a virtual environment: its venv package is missing." \
    "On Debian and Ubuntu: apt-get install python3-venv" \
    "(for a Python that is not the system's own: $("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'))"
}

# need_compiler: llama.cpp is compiled for this machine's processor. CMake and Ninja come through pip.
need_compiler() {
  local name
  for name in ${CXX:-c++ g++ clang++}; do
    command -v "${name%% *}" >/dev/null 2>&1 && return
  done
  fail "A C++ compiler is needed to build llama.cpp and was not found." \
    "On Debian and Ubuntu: apt-get install g++" \
    "On macOS: xcode-select --install"
}

# mend_amx: on a processor with AMX, GCC before 13 compiles llama.cpp's matrix code into a fault; a corrected intrinsic is put before it.
# (An engine that was built without this notices and goes on without AMX, slower.)
mend_amx() {
  local header
  grep -qsw amx_tile /proc/cpuinfo || return 0
  header=$(${CXX:-c++} -print-file-name=include)/amxtileintrin.h
  grep -qs 'const void \*\*' "$header" || return 0
  say "This compiler's AMX intrinsics are faulty: building with scripts/amx-fix.h"
  export CXXFLAGS="${CXXFLAGS:-} -include \"$ROOT/scripts/amx-fix.h\""
}

# jobs: how many compilers at a time: one per core, but each may take 1 GB of memory.
jobs_that_fit() {
  local cores memory=64
  cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
  [[ -r /proc/meminfo ]] && memory=$(awk '/MemAvailable/ { print int($2 / 1000000) }' /proc/meminfo)
  ((memory < 1)) && memory=1
  echo $((cores < memory ? cores : memory))
}

# make_venv: create .venv, or again if it is broken (an interrupted run, a Python that was replaced, a moved clone).
make_venv() {
  if "$VENV/bin/python" -m pip --version >/dev/null 2>&1 && [[ -f $VENV/.made-for && $(<"$VENV/.made-for") == "$ROOT" ]]; then
    return
  fi
  local python missing=""
  python=$(find_python)
  (need_venv "$python") || missing=yes # each says what it lacks, so that one run names everything
  (need_compiler) || missing=yes
  [[ -z $missing ]] || exit 1
  say "Making .venv with $("$python" --version)"
  rm -rf "$VENV"
  "$python" -m venv "$VENV"
  printf '%s\n' "$ROOT" >"$VENV/.made-for"
}

# stamp EXTRA: prints what the installation depends on, as a digest.
stamp() {
  "$VENV/bin/python" - "$1" <<'PYTHON'
import hashlib, os, sys
text = open("pyproject.toml", "rb").read() + sys.argv[1].encode() + os.environ.get("CMAKE_ARGS", "").encode()
print(hashlib.sha256(text).hexdigest())
PYTHON
}

# progress: reads `pip install -v` and shows what goes on: on a terminal one line that changes, else a line now and then.
progress() {
  local line rest="" doing="" last="" shown=-30 status
  while true; do
    if IFS= read -r -t 2 line; then
      line=$rest$line rest=""
    else
      status=$?
      rest=$rest$line line=""
      ((status > 128)) || break
    fi
    if [[ $line =~ ^[[:space:]]*\[[[:space:]]*([0-9]+)/([0-9]+)\] && ${BASH_REMATCH[2]} -ge 20 ]]; then
      doing="compiling llama.cpp, step ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
    elif [[ $line =~ ^[[:space:]]*\[[[:space:]]*([0-9]+)%\] ]]; then
      doing="compiling llama.cpp, ${BASH_REMATCH[1]} %"
    elif [[ $line =~ ^Collecting\ ([^[:space:]]+) ]]; then
      doing="collecting ${BASH_REMATCH[1]}"
    elif [[ $line =~ ^[[:space:]]*Building\ wheel\ for\ ([^[:space:]]+) && $line != *finished* ]]; then
      doing="building ${BASH_REMATCH[1]}"
    elif [[ $line == "Installing collected packages"* ]]; then
      doing="installing"
    fi
    [[ -n $doing ]] || continue
    if [[ -t 1 ]]; then
      printf '\r\033[K   %s  %s' "$(elapsed)" "$doing"
    elif [[ $doing != "$last" ]] && ((SECONDS - shown >= 30)); then
      printf '   %s  %s\n' "$(elapsed)" "$doing"
      shown=$SECONDS last=$doing
    fi
  done
  [[ -t 1 ]] && printf '\r\033[K'
  return 0
}

# install EXTRA: the package (editable) with its dependencies into .venv, unless that was done for this pyproject.toml.
install() {
  local extra=${1:-} wanted target=. log=$VENV/install.log
  [[ -n $extra ]] && target=".[$extra]"
  wanted=$(stamp "$extra")
  if [[ -f $VENV/.installed-${extra:-base} && $(<"$VENV/.installed-${extra:-base}") == "$wanted" ]]; then
    say "Installed already (.venv)"
    return
  fi
  if ! "$VENV/bin/python" -c 'import llama_cpp' >/dev/null 2>&1; then
    need_compiler
    mend_amx
    say "Installing into .venv; the first time this compiles llama.cpp, which takes about 5 minutes on 2 cores"
  else
    say "Installing into .venv"
  fi
  export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(jobs_that_fit)}
  if ! "$VENV/bin/python" -m pip install -v --disable-pip-version-check -e "$target" 2>&1 | tee "$log" | progress; then
    printf '\n' >&2
    grep -E 'rror' "$log" | tail -n 15 >&2 || true
    fail "The installation failed; the whole log is $log"
  fi
  printf '%s\n' "$wanted" >"$VENV/.installed-${extra:-base}"
  [[ -z $extra ]] || stamp "" >"$VENV/.installed-base"
  say "Installed ($(elapsed) so far)"
}

# pull_model: the small default model, checked by its digest. A second run only looks.
pull_model() {
  say "Model $DEFAULT_MODEL (491 MB once, then kept in your cache folder)"
  "$VENV/bin/lsp-complete" models pull "$DEFAULT_MODEL"
}
