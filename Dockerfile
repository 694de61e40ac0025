# Relevo's services: web, feeder, worker, exporter, Flower and migrate are one image with different commands.
#
#   docker build -t relevo .
#   docker run --rm relevo --help

ARG PYTHON=3.13

FROM python:${PYTHON}-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/relevo
WORKDIR /src
# The dependencies first: they change seldom, and this layer is kept while they do not.
COPY deploy/requirements.lock deploy/build.lock ./
RUN /opt/relevo/bin/pip install --require-hashes --only-binary :all: -r requirements.lock
RUN python -m venv /opt/build && /opt/build/bin/pip install --require-hashes --only-binary :all: -r build.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY monitoring monitoring
COPY ordering ordering
COPY relevo relevo
COPY workers workers
RUN /opt/build/bin/python -m hatchling build -t wheel -d /src/dist \
    && /opt/relevo/bin/pip install --no-deps --no-index /src/dist/*.whl

FROM python:${PYTHON}-slim-bookworm
# tini is PID 1: it passes TERM on to the service and reaps what bodies leave behind. git is what shell items miss first.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 relevo \
    && useradd --uid 10001 --gid relevo --create-home --home-dir /home/relevo relevo \
    && install --directory --owner=relevo --group=relevo /srv/project
COPY --from=build /opt/relevo /opt/relevo
ENV PATH=/opt/relevo/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    RELEVO_CATALOGUE=/srv/project/relevo.toml \
    RELEVO_HOME=/home/relevo/.relevo \
    RELEVO_LOG=json
USER relevo
WORKDIR /srv/project
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "relevo"]
CMD ["--help"]
