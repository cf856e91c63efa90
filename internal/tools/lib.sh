# Common part of the installers: sourced with the tool's name, never run.
#
# Each installer puts one pinned program under $TOOLS (default: .tools in the
# checkout), does nothing when its stamp names what is wanted, and prints one
# line when it starts and one when it is done.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOOLS=${TOOLS:-$here/../../.tools}
mkdir -p "$TOOLS/bin" "$TOOLS/stamps"
TOOLS=$(cd "$TOOLS" && pwd)

# installed NAME VERSION FILE... tells whether VERSION of NAME is there whole.
installed() {
	local stamp=$TOOLS/stamps/$1 version=$2 file
	[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$version" ] || return 1
	shift 2
	for file; do [ -x "$file" ] || return 1; done
}

# begin NAME VERSION COST announces an installation. Its log is kept until the
# next one, and shown where the installation fails.
begin() {
	name=$1 version=$2 log=$TOOLS/stamps/$1.log started=$SECONDS
	echo "tools: installing $1 $2 (once; $3)"
	trap 'rc=$?; [ $rc -eq 0 ] || { tail -n 40 "$log" >&2; echo "tools: $name $version failed; all of the log: $log" >&2; }; exit $rc' EXIT
}

# compile PROGRAM PACKAGE [LDFLAGS] builds a program of the module $module, which
# pins it: $TOOLS/bin/PROGRAM.
compile() {
	(cd "$module" && GOFLAGS='' CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${3:-}" -o "$TOOLS/bin/$1" "$2") >"$log" 2>&1
}

# done_with stamps what begin announced.
done_with() {
	echo "$version" >"$TOOLS/stamps/$name"
	echo "tools: $name $version ready in $((SECONDS - started)) s"
}

# digest FILE... names a module by its content: whatever changes it, rebuilds it.
digest() {
	cat "$@" | cksum | cut -d' ' -f1
}
