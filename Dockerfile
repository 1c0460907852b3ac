# The container image of a node. docker-compose.yml builds it; alone: docker build -t holdfast .
FROM debian:trixie-slim AS build
WORKDIR /holdfast
COPY scripts/install-packages scripts/
RUN scripts/install-packages build
COPY CMakeLists.txt CMakePresets.json ./
COPY cmake cmake
COPY docs/openapi.json docs/
COPY sql sql
COPY include include
COPY src src
ARG HOLDFAST_COMMIT=unknown
RUN cmake --preset release -DHOLDFAST_TESTS=OFF -DHOLDFAST_COMMIT=$HOLDFAST_COMMIT \
    && cmake --build --preset release --target holdfast \
    && strip build/release/holdfast

FROM debian:trixie-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libboost-json1.83.0 libboost-url1.83.0 libpqxx-7.10 libprometheus-cpp-core1.0 libspdlog1.15 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin \
    && useradd --system --no-create-home --shell /usr/sbin/nologin holdfast
COPY --from=build /holdfast/build/release/holdfast /usr/local/bin/holdfast
USER holdfast
# Reachable from outside the container; a node refuses that until it is told HOLDFAST_ALLOW_ANONYMOUS=true.
ENV HOLDFAST_LISTEN_ADDRESS=0.0.0.0 HOLDFAST_PORT=8080
EXPOSE 8080
# Liveness: a node whose database is away is healthy and waits. Whether it can serve, the balancer asks /readyz.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$HOLDFAST_PORT && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["holdfast"]
CMD ["serve"]
