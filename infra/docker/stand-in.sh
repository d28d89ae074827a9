#!/usr/bin/env bash
# stand-in.sh IMAGE...: builds images of these names by stand-in.Dockerfile. Needs root, mmdebstrap, npm and cargo.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
node=$(sed -n 's/^FROM node:\([0-9.]*\).*/\1/p;T;q' "$here/Dockerfile")
case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$dir/debian.tar"
npm install --silent --global --prefix "$dir/node" "node-linux-$arch@$node" npm@10
mkdir "$dir/rust"
cp --recursive --dereference "$(rustc --print sysroot)"/{bin,lib} "$dir/rust"
cp --dereference /etc/ssl/certs/ca-certificates.crt "$here/stand-in-postgres.sh" "$dir"
for image; do
  target=${image%:*}
  docker build --quiet --network host --file "$here/stand-in.Dockerfile" --target "${target##*/}" --tag "$image" "$dir"
done
