#!/usr/bin/env bash
# Trains once for every pair of a learning rate and a batch size, and writes one CSV:
#   scripts/sweep.sh --config lenet_1gpu.yaml --lr "0.05 0.1 0.2" --batch "128 256" --out sweep.csv
# Arguments after -- go to every `mgt train`:  ... --out sweep.csv -- --set epochs=3
# A run that failed has its exit code in the last column and nothing between; the others go on.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=scripts/lib.sh
source "$here/lib.sh"

config='' rates='' batches='' out=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit
      ;;
    --)
      shift
      break
      ;;
    --config | --lr | --batch | --out)
      [ $# -ge 2 ] || die "$1 needs a value"
      case $1 in
        --config) config=$2 ;;
        --lr) rates=$2 ;;
        --batch) batches=$2 ;;
        --out) out=$2 ;;
      esac
      shift 2
      ;;
    *) die "unknown argument $1 (see --help)" ;;
  esac
done
for option in config:"$config" lr:"$rates" batch:"$batches" out:"$out"; do
  [ -n "${option#*:}" ] || die "--${option%%:*} is missing (see --help)"
done

columns=test_acc,sec_per_epoch,samples_per_sec,steps
# Reads the JSON object of one run and prints those columns.
read_summary() {
  python3 -c 'import json, sys; run = json.load(sys.stdin); print(*(run[key] for key in sys.argv[1].split(",")), sep=",")' \
    "$columns"
}

failed=0
echo "lr,batch_size,$columns,exit" >"$out"
for lr in $rates; do
  for batch in $batches; do
    status=0
    summary=$("$here/mgt" train --config "$config" --json --set "optimizer.lr=$lr" --set "batch_size=$batch" "$@") ||
      status=$?
    if [ "$status" = 0 ]; then
      echo "$lr,$batch,$(read_summary <<<"$summary"),0" >>"$out"
    else
      echo "$lr,$batch,,,,,$status" >>"$out"
      failed=$((failed + 1))
    fi
    tail -n 1 "$out" >&2
    # Ctrl-C ends the sweep, not one run of it.
    [ "$status" != 130 ] && [ "$status" != 143 ] || exit "$status"
  done
done
[ "$failed" = 0 ] || die "$failed of the runs failed; their exit codes are in $out"
