# The base images of the Dockerfile, for a machine that reaches package registries and no image hub (stand-in.sh): Debian by mmdebstrap,
# Node and npm by npm, Rust from this machine. They trust the certificates of this machine.
FROM scratch AS debian
ADD debian.tar /
COPY ca-certificates.crt /etc/ssl/certs/
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt

FROM debian AS node
COPY node /usr/local

FROM debian AS rust
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY rust /usr/local
