#!/usr/bin/env bash
# serve.sh DIR PORT [vllm flags]: the vLLM of install.sh on 127.0.0.1:PORT, in the foreground; it answers /health after about 30 s.
set -euo pipefail
dir=$1 port=$2
shift 2
export VLLM_TARGET_DEVICE=cpu VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=2
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
# float32 and this ceiling keep clear of AMX tiles, which some CPUs announce and then refuse.
export ONEDNN_MAX_CPU_ISA=AVX512_CORE
exec "$dir/venv/bin/vllm" serve "$dir/model" --served-model-name tiny --load-format dummy --dtype float32 --enforce-eager \
	--host 127.0.0.1 --port "$port" --max-model-len 4096 \
	--reasoning-parser qwen3 --enable-auto-tool-choice --tool-call-parser hermes --enable-prompt-tokens-details "$@"
