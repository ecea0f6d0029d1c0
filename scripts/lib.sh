# Shared by the scripts of this folder: sourced, not run.
# Messages go to standard error: standard output belongs to mgt, whose --json prints one object there and nothing else.
# shellcheck shell=bash disable=SC2034

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mgt
build=$repository/build
program=$build/bin/mgt
configured=$build/.setup-configured   # what the build folder was configured for
built=$build/.setup-built             # its time: when the last whole build of the program began
given="MGT_TORCH=${MGT_TORCH:-} CMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH:-}"   # a change means a new configuration

say() { printf '%s\n' "$*" >&2; }

die() {
  say "${0##*/}: $*"
  exit 1
}

# The comment that opens the calling script is its help.
usage() { sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"; }

# step TEXT COMMAND ...: one line that says what is done and how long it took. The command's output is kept aside and
# its end shown only when it fails; the script then ends.
step() {
  local text=$1 start=$SECONDS log status=0
  shift
  log=$(mktemp)
  printf '%s ... ' "$text" >&2
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" = 0 ]; then
    say "$((SECONDS - start)) s"
    rm -f "$log"
    return
  fi
  say "failed after $((SECONDS - start)) s"
  tail -n "${step_lines:-20}" "$log" >&2
  rm -f "$log"
  exit 1
}

# Whether the program stands, was built for what is given now, and no source changed since. It runs before every
# command, so it starts one process only.
up_to_date() {
  local given_then torch_then
  [ -x "$program" ] && [ -f "$built" ] && [ -f "$configured" ] || return 1
  { read -r given_then && read -r torch_then; } <"$configured" || return 1
  [ "$given_then" = "$given" ] || return 1
  [ -e "$torch_then/lib/libtorch_cpu.so" ] || return 1
  [ -z "$(cd "$repository" &&
    find apps lib third_party CMakeLists.txt CMakePresets.json scripts/setup -newer "$built" -print -quit)" ]
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }
