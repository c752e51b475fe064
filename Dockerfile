# The whole suite in an image: every command but those that need a Kafka release from Maven runs without a network.
#
#   docker build -t tidegauge . && docker run --rm -v "$PWD:/work" tidegauge check logs/
FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE requirements.lock /source/
COPY tidegauge /source/tidegauge
RUN python -m venv /opt/tidegauge \
 && /opt/tidegauge/bin/pip install --no-cache-dir --constraint /source/requirements.lock "/source[all]" pytest

FROM python:3.12-slim
COPY --from=build /opt/tidegauge /opt/tidegauge
# What the judge compiles is kept in the image's own cache: a container is gone after its run.
ENV PATH=/opt/tidegauge/bin:$PATH XDG_CACHE_HOME=/var/cache/tidegauge
RUN useradd --create-home --uid 10001 judge && mkdir -p /var/cache/tidegauge /work && chown judge /var/cache/tidegauge /work
USER 10001
RUN python -m tidegauge.conformance.engine.precompile
WORKDIR /work
ENTRYPOINT ["tidegauge"]
CMD ["--help"]
