#!/usr/bin/env bash
# Everything that a machine with a GPU can tell, in one go: run.sh [FOLDER [STEP...]]. With STEPs, as patterns of the shell, only
# those are run: `run.sh out 'test-*' bench`. Each step's output is kept in FOLDER (`gpu-out`); the last lines say which steps
# failed or were skipped, and why. The exit status is 0 only if none failed.
#
# KEYWAY_GPU_DEVICE names the device (cuda:0), KEYWAY_GPU_LIMIT the seconds that a step may take (1200). Steps that only compare
# run KEYWAY_GPU_JOBS at a time (as many as there are processors, at most 16); those that measure run alone, beside PyTorch in
# KEYWAY_GPU_ROUNDS rounds (5).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-gpu-out}
wanted=("${@:2}")
mkdir -p "$out"
rm -f "$out"/*.result
keyway=$here/../bin/keyway
device=${KEYWAY_GPU_DEVICE:-cuda:0}
limit=${KEYWAY_GPU_LIMIT:-1200}
processors=$(nproc)
jobs=${KEYWAY_GPU_JOBS:-$((processors > 16 ? 16 : processors))}
names=()

is_wanted() {
    local pattern
    [ ${#wanted[@]} -eq 0 ] && return 0
    for pattern in "${wanted[@]}"; do
        # shellcheck disable=SC2053 # a pattern is what is wanted
        [[ $1 == $pattern ]] && return 0
    done
    return 1
}

# Runs a step: its name, and the command.
run() {
    local name=$1 begin=$SECONDS status
    shift
    timeout --signal INT --kill-after 10 "$limit" "$@" >"$out/$name.txt" 2>&1
    status=$?
    case $status in
    0) echo "$name: ok, $((SECONDS - begin)) s" ;;
    124 | 137) echo "$name: FAILED: not done within $limit s" ;;
    *) echo "$name: FAILED with status $status, $((SECONDS - begin)) s" ;;
    esac >"$out/$name.result"
    printf '\n=== %s: %s\n' "$name" "$*"
    tail -n 60 "$out/$name.txt"
    cat "$out/$name.result"
}

# A step that runs alone, after all that began before.
step() {
    is_wanted "$1" || return 0
    wait
    names+=("$1")
    run "$@"
}

# A step that runs beside others.
beside() {
    is_wanted "$1" || return 0
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    names+=("$1")
    run "$@" &
}

skip() {
    is_wanted "$1" || return 0
    names+=("$1")
    echo "$1: skipped: $2" | tee "$out/$1.result"
}

# Runs scenarios of a test, each in a program of its own.
scenarios() {
    local test=$1 scenario
    shift
    for scenario in "$@"; do
        beside "test-$test-$scenario$suffix" env KEYWAY_TEST_SCENARIO="$scenario" "${settings[@]}" \
            "$here/tests/$test" scenarios --exact --nocapture --test-threads 1
    done
}
settings=()
suffix=

step machine sh -c 'nvidia-smi || echo "nvidia-smi is not there"; uname -srm; nproc'
step list "$keyway" backend list
step doctor "$keyway" doctor
step train-cold "$keyway" train digits --model mlp --device "$device" --json "$out/train-cold.json"
step train-warm "$keyway" train digits --model mlp --device "$device" --json "$out/train-warm.json"

scenarios device values streams pinned errors
scenarios index order places choice running random errors
scenarios nets nets
scenarios attention attention groups
scenarios cores cores
if [ "$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader,nounits 2>/dev/null | head -n 1 | cut -d. -f1)" -ge 8 ] 2>/dev/null; then
    settings=(KEYWAY_TEST_HAS_TF32=1)
fi
scenarios tf32 products
own=("${settings[@]}")
settings+=(KEYWAY_CUDA_BLAS=off)
scenarios tf32 kernels
settings=("${own[@]}")
scenarios blas values left streams memory kinds convolutions
scenarios dnn values left kinds memory recorded
if [ "$(nvidia-smi --list-gpus 2>/dev/null | wc -l)" -gt 1 ]; then
    scenarios blas threads
else
    skip test-blas-threads "it compares two GPUs, and there is one"
fi
scenarios graph training memory many products launches refusals
scenarios checks captured training bags
for checks in now later; do
    settings=("KEYWAY_CUDA_INDEX_CHECKS=$checks")
    suffix=-checked-$checks
    scenarios checks "$checks"
done
for model in mlp cnn bag; do
    for on in cpu "$device"; do
        beside "train-$model-${on%%:*}" "$keyway" train digits --model "$model" --device "$on" --json "$out/train-$model-${on%%:*}.json"
    done
done
step conformance "$keyway" conformance keyway-cuda --json "$out/conformance.json"
if command -v compute-sanitizer >/dev/null; then
    ops=(--op add --op sum --op softmax --op sort --op index_select --op scatter_add --op mm --op conv --op max_pool
        --op norm --op channel_norm_backward --op nll_loss --op flash_attention --op flash_attention_backward --op adam_step --op sgd_step)
    for tool in memcheck racecheck synccheck; do
        beside "sanitizer-$tool" compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 1 \
            "$keyway" conformance keyway-cuda --quick --timeout 300 "${ops[@]}"
    done
else
    skip sanitizer "compute-sanitizer, of NVIDIA's toolkit, is not there"
fi
step bench env KEYWAY_BACKEND_PATH="$here/../backends" "$here/device" "$device"
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    step beside-pytorch env KEYWAY_BACKEND_PATH="$here/../backends" PYTHONUNBUFFERED=1 \
        python3 "$here/beside_pytorch.py" "$here/device" "$device" --rounds "${KEYWAY_GPU_ROUNDS:-5}" --out "$out/beside-pytorch.jsonl"
else
    skip beside-pytorch "python3 has no PyTorch that sees a GPU"
fi

wait
printf '\n'
for name in "${names[@]}"; do cat "$out/$name.result"; done | tee "$out/summary.txt"
! grep -q ': FAILED' "$out/summary.txt"
