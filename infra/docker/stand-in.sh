#!/usr/bin/env bash
# stand-in.sh NODE_IMAGE RUST_IMAGE: builds images of these names by stand-in.Dockerfile. Needs root, mmdebstrap, npm and cargo.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=${1#node:}
case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$dir/debian.tar"
npm install --silent --global --prefix "$dir/node" "node-linux-$arch@${version%%-*}" npm@10
mkdir "$dir/rust"
cp --recursive --dereference "$(rustc --print sysroot)"/{bin,lib} "$dir/rust"
cp --dereference /etc/ssl/certs/ca-certificates.crt "$dir"
build() { docker build --quiet --network host --file "$here/stand-in.Dockerfile" --target "$1" --tag "$2" "$dir"; }
build node "$1"
build rust "$2"
