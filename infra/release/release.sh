#!/usr/bin/env bash
# pnpm release [DIR [PART ...]]: makes a release of the checked-out commit in DIR [.spillway/release/VERSION].
# Parts: changelog chart engine client sboms licences images [all]. The same commit gives the same bytes on the same machine.
# Needs GNU tar, jq and npm; cargo for engines, buildah for images.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" = --help ]; then sed --quiet '2,4s/^# //p' infra/release/release.sh; exit; fi
parts=(changelog chart engine client sboms licences images)
version=$(jq --raw-output .version package.json)
read -r commit epoch < <(git log -1 --format='%H %ct')
out=$(realpath --canonicalize-missing "${1:-.spillway/release/$version}")
[ $# -gt 1 ] && parts=("${@:2}")
missing=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# archive FILE DIR MEMBER...: no owner, time or order of this machine.
archive() {
  tar --create --file "$1" --directory "$2" --format=gnu --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --use-compress-program='gzip -9n' "${@:3}"
}

changelog() {
  grep --quiet "^## \[$version\] - " .github/CHANGELOG.md || { echo "CHANGELOG.md says nothing of $version" >&2; exit 1; }
  cp .github/CHANGELOG.md "$work/out/"
}

# Without the time at which `helm package` runs.
chart() {
  archive "$work/out/spillway-$version.tgz" infra/helm --exclude=.helmignore --exclude=spillway/ci spillway
}

# engine_package TARGET ARCH LIBC ADDON: the native engine as a package of its own, in the form of napi-rs.
engine_package() {
  local name="engine-linux-$2-$3" dir="$work/$1/package" libc=glibc
  [ "$3" = musl ] && libc=musl
  mkdir -p "$dir"
  cp "$4" "$dir/spillway.node"
  cp LICENSE "$dir/"
  cp "$work/crates.txt" "$dir/THIRD-PARTY-LICENSES.txt"
  jq --arg name "@spillway/$name" --arg target "$1" --arg arch "$2" --arg libc "$libc" \
    '{$name, version, description: "The native engine of @spillway/client for \($target)", license, engines, main: "spillway.node",
      os: ["linux"], cpu: [$arch], libc: [$libc]}' package.json >"$dir/package.json"
  printf '# @spillway/%s\n\nThe native engine of `@spillway/client` for %s: install it beside the client.\n' "$name" "$1" >"$dir/README.md"
  archive "$work/out/spillway-$name-$version.tgz" "$work/$1" package
}

engine() {
  if ! command -v cargo >/dev/null || [ "$(uname)" != Linux ]; then missing+=("engine: needs cargo on Linux"); return; fi
  local own target arch libc glibc built=worker/engine/target
  local build=(--quiet --release --locked --features addon --manifest-path worker/engine/Cargo.toml)
  own=$(rustc -vV | sed -n 's/^host: //p')
  node --import tsx infra/release/src/crates.ts --licences >"$work/crates.txt"
  node --import tsx infra/release/src/crates.ts >"$work/crates.json"
  # The oldest glibc is Debian 10's. The musl build is linked with the C library of the system, as Node is.
  while read -r target arch libc glibc; do
    if [ "$target" = "$own" ]; then
      cargo build "${build[@]}"
      engine_package "$target" "$arch" "$libc" "$built/release/libspillway_engine.so"
    elif command -v cargo-zigbuild >/dev/null && [ -d "$(rustc --print target-libdir --target "$target")" ]; then
      RUSTFLAGS=-Ctarget-feature=-crt-static cargo zigbuild "${build[@]}" --target "$target$glibc"
      engine_package "$target" "$arch" "$libc" "$built/$target/release/libspillway_engine.so"
    else
      missing+=("engine for $target: needs cargo-zigbuild and rustup target add $target")
    fi
  done <<'TARGETS'
x86_64-unknown-linux-gnu x64 gnu .2.28
x86_64-unknown-linux-musl x64 musl
aarch64-unknown-linux-gnu arm64 gnu .2.28
aarch64-unknown-linux-musl arm64 musl
TARGETS
}

client() { (cd worker/client && npx --yes pnpm pack --pack-destination "$work/out" >/dev/null); }

# bill SUBJECT [COMPILED]: a bill without number and address of the registry, in the order of names, with what is compiled in.
bill() {
  jq --sort-keys --slurpfile compiled "${2:-/dev/null}" --arg date "$(date --utc --date="@$epoch" +%Y-%m-%dT%H:%M:%SZ)" "
    del(.serialNumber) | .metadata.timestamp = \$date
    | .components += [\$compiled[0] // [] | .[]
        | {type: \"library\", \"bom-ref\": .purl, name, version, purl, licenses: [{expression: .license}]}]
    | .components |= (unique_by(.\"bom-ref\") | map((.externalReferences // []) as \$references
        | ([\$references[] | select(.type == \"distribution\") | .hashes // []] | add // []) as \$hashes
        | .externalReferences = [\$references[] | select(.type != \"distribution\")] | if \$hashes == [] then . else .hashes = \$hashes end))
    | .dependencies |= (map(.dependsOn |= (. // [] | sort)) | sort_by(.ref))" "$work/$1.json" >"$work/out/$1.cdx.json"
}

# Of the images without their base, and of what the packed client is installed with.
sboms() {
  local form=(--sbom-format cyclonedx --sbom-spec-version 1.6 --sbom-type application)
  npx --yes pnpm sbom --prod --filter @spillway/api "${form[@]}" --out "$work/gateway.json" >/dev/null
  npx --yes pnpm sbom --prod --filter @spillway/worker "${form[@]}" --out "$work/worker.json" >/dev/null
  mkdir "$work/application"
  (
    cd "$work/application"
    echo '{"name": "application", "version": "1.0.0"}' >package.json
    npm install --silent --package-lock-only --ignore-scripts "$work/out/spillway-client-$version.tgz"
    npm sbom --package-lock-only --sbom-format cyclonedx >"$work/client.json"
  )
  bill gateway
  bill worker "$([ -f "$work/crates.json" ] && echo "$work/crates.json" || echo /dev/null)"
  bill client worker/client/dist/bundled.json
}

licences() { bash infra/release/licences.sh "$work/out" >"$work/out/LICENCES.md"; }

images() {
  if ! command -v buildah >/dev/null; then missing+=("images: needs buildah"); return; fi
  local target
  for target in gateway worker; do
    buildah build --isolation chroot --layers=false --timestamp "$epoch" --file infra/docker/Dockerfile --target "$target" \
      --label "org.opencontainers.image.revision=$commit" --label "org.opencontainers.image.version=$version" --tag "spillway/$target:$version" . ||
      { missing+=("image $target: its base cannot be pulled, or its build failed"); continue; }
    buildah push "spillway/$target:$version" "oci-archive:$work/out/spillway-$target-$version-linux-$(uname -m).oci.tar:$version"
  done
}

if [ -n "$(ls -A "$out" 2>/dev/null)" ] && [ ! -f "$out/release.json" ]; then
  echo "$out has files that are no release: name another folder." >&2
  exit 1
fi
mkdir "$work/out"
npx --yes pnpm build >/dev/null
for part in "${parts[@]}"; do
  [[ "$(type -t "$part")" = function ]] || { echo "There is no part $part." >&2; exit 1; }
  echo "$part" && "$part"
done
jq --null-input --arg version "$version" --arg commit "$commit" --argjson changed "$([ -z "$(git status --porcelain)" ] && echo false || echo true)" \
  '{$version, $commit, $changed, missing: $ARGS.positional}' --args "${missing[@]}" >"$work/out/release.json"
(cd "$work/out" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
rm -rf "$out" && mkdir -p "$(dirname "$out")" && mv "$work/out" "$out"
printf '%s\n' "${missing[@]/#/Not made: }" "Spillway $version is in $out."
