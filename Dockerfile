# Bulkhead with all that it needs: docker build -t bulkhead . && docker run --rm -v "$PWD:/work" bulkhead run
# container/try does the same in an empty folder, without a container engine.
FROM debian:bookworm-slim
ENV RUSTUP_HOME=/opt/rustup CARGO_HOME=/opt/cargo PATH=/opt/cargo/bin:/usr/local/bin:/usr/bin:/bin
COPY . /opt/bulkhead
RUN /opt/bulkhead/container/install
WORKDIR /work
ENTRYPOINT ["bulkhead"]
CMD ["help"]
