#!/usr/bin/env bash
# Everything that a machine with a GPU can tell, in one go: run.sh [FOLDER]. Each step's output is kept in FOLDER (`gpu-out`),
# the last lines say which steps failed or were skipped, and why. The exit status is 0 only if none failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-gpu-out}
mkdir -p "$out"
keyway=$here/../bin/keyway
device=${KEYWAY_GPU_DEVICE:-cuda:0}
summary=()
failed=0

step() {
    local name=$1 begin=$SECONDS
    shift
    printf '\n=== %s: %s\n' "$name" "$*"
    if "$@" 2>&1 | tee "$out/$name.txt"; then
        summary+=("$name: ok, $((SECONDS - begin)) s")
    else
        summary+=("$name: FAILED, $((SECONDS - begin)) s")
        failed=1
    fi
}

skip() {
    summary+=("$1: skipped: $2")
}

# Runs scenarios of a test, each in a program of its own.
scenarios() {
    local test=$1 scenario
    shift
    for scenario in "$@"; do
        step "test-$test-$scenario" env KEYWAY_TEST_SCENARIO="$scenario" \
            "$here/tests/$test" scenarios --exact --nocapture --test-threads 1
    done
}

step machine sh -c 'nvidia-smi || echo "nvidia-smi is not there"; uname -srm; nproc'
step list "$keyway" backend list
step doctor "$keyway" doctor
scenarios device values streams pinned errors
scenarios index order places choice running random errors
scenarios nets nets
scenarios attention attention
scenarios cores cores
if [ "$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader,nounits 2>/dev/null | head -n 1 | cut -d. -f1)" -ge 8 ] 2>/dev/null; then
    export KEYWAY_TEST_HAS_TF32=1
fi
scenarios tf32 kernels products
scenarios blas values left streams threads memory kinds
scenarios graph training memory many products launches refusals
scenarios checks captured training bags
KEYWAY_CUDA_INDEX_CHECKS=now scenarios checks now
KEYWAY_CUDA_INDEX_CHECKS=later scenarios checks later
step conformance "$keyway" conformance keyway-cuda --json "$out/conformance.json"
for model in mlp cnn bag; do
    for on in cpu "$device"; do
        step "train-$model-${on%%:*}" "$keyway" train digits --model "$model" --device "$on" --json "$out/train-$model-${on%%:*}.json"
    done
done
if command -v compute-sanitizer >/dev/null; then
    ops=(--op add --op sum --op softmax --op sort --op index_select --op scatter_add --op mm --op conv --op max_pool
        --op norm --op channel_norm_backward --op nll_loss --op flash_attention --op flash_attention_backward --op adam_step --op sgd_step)
    for tool in memcheck racecheck synccheck; do
        step "sanitizer-$tool" compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 1 \
            "$keyway" conformance keyway-cuda --quick --timeout 300 "${ops[@]}"
    done
else
    skip sanitizer "compute-sanitizer, of NVIDIA's toolkit, is not there"
fi
step bench env KEYWAY_BACKEND_PATH="$here/../backends" "$here/device" "$device"
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    step beside-pytorch env KEYWAY_BACKEND_PATH="$here/../backends" \
        python3 "$here/beside_pytorch.py" "$here/device" "$device" --out "$out/beside-pytorch.jsonl"
else
    skip beside-pytorch "python3 has no PyTorch that sees a GPU"
fi

printf '\n'
printf '%s\n' "${summary[@]}" | tee "$out/summary.txt"
exit $failed
