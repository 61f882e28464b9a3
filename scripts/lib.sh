# Shared by scripts/start and scripts/test: stages with their times, and the build.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
stages=()

# stage NAME COMMAND…: runs it, keeps its time; on failure says which stage failed and ends with its status.
stage() {
  local name=$1 begin=$SECONDS status=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  stages+=("$(printf '%-28s %4d s' "$name" $((SECONDS - begin)))")
  if [ $status -ne 0 ]; then
    printf '\n%s failed (exit %d) after %d s.\n' "$name" $status $((SECONDS - begin)) >&2
    times
    exit $status
  fi
}

times() {
  printf '\nTime by stage\n'
  printf '  %s\n' "${stages[@]}"
  printf '  %-28s %4d s\n' total $SECONDS
}

configure() {  # configure PRESET [cmake arguments]
  local preset=$1
  shift
  if ! cmake --preset "$preset" "$@" >"$root/build/configure-$preset.log" 2>&1; then
    tail -n 25 "$root/build/configure-$preset.log" >&2
    echo "The build could not be configured. If a package is missing, run scripts/deps; if the compiler changed, remove build/$preset and try again." >&2
    return 1
  fi
}

build() {  # build PRESET [targets]
  local preset=$1
  shift
  # A LibTorch file needs up to 1.5 GB while it compiles.
  local jobs memory
  jobs=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "$memory" -lt 1 ] && memory=1
  [ "$jobs" -gt "$memory" ] && jobs=$memory
  if ! cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}; then
    echo "The build failed: the first error above says where. scripts/deps brings what it needs; remove build/$preset to start over." >&2
    return 1
  fi
}
mkdir -p build
