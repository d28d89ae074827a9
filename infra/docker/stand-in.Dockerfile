# Images of these names for a machine that reaches package registries and no image hub (stand-in.sh): the base images of the Dockerfile, and
# what compose.yaml takes from a hub, except Grafana. Debian comes by mmdebstrap, Node and npm by npm, Rust from this machine. They trust the
# certificates of this machine.
FROM scratch AS debian
ADD debian.tar /
COPY ca-certificates.crt /etc/ssl/certs/
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt

FROM debian AS node
COPY node /usr/local

FROM debian AS rust
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY rust /usr/local

FROM debian AS postgres
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql
COPY stand-in-postgres.sh /
ENTRYPOINT ["sh", "/stand-in-postgres.sh"]

FROM debian AS redis
RUN apt-get update && apt-get install --yes --no-install-recommends redis-server
WORKDIR /data
# Redis's own image answers other containers, too.
ENTRYPOINT ["sh", "-c", "exec \"$@\" --protected-mode no", "--"]

FROM debian AS prometheus
RUN apt-get update && apt-get install --yes --no-install-recommends prometheus
ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
