# gemgauge in a container: docker build -t gemgauge:0.1.0 .
# How to run it, with the home read-only: docs/install.md.
FROM rust:1.90-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin gemgauge

FROM debian:12.11-slim
# Whoever runs it as somebody else (--user) mounts a directory of theirs over the ledger's.
RUN groupadd --gid 65532 gemgauge \
 && useradd --uid 65532 --gid 65532 --no-create-home --home-dir /home/gemini --shell /usr/sbin/nologin gemgauge \
 && install -d -m 0755 /home/gemini \
 && install -d -m 0700 -o 65532 -g 65532 /var/lib/gemgauge
COPY --from=build /src/target/release/gemgauge /usr/local/bin/gemgauge

ENV GEMGAUGE_HOME=/home/gemini \
    GEMGAUGE_DB=/var/lib/gemgauge/ledger.db
VOLUME /var/lib/gemgauge
EXPOSE 10436
USER 65532:65532

# 401: it is there and asks for a password. With TLS switch this off (--no-healthcheck), or ask with
# a client that knows your authority.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/10436 && printf 'GET /-/healthy HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -Eq '^HTTP/1.[01] (200|401)'"]

ENTRYPOINT ["/usr/local/bin/gemgauge"]
CMD ["serve"]
