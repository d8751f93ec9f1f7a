# syntax=docker/dockerfile:1
# The workbook as a container: its two commands, on the processor alone. docs/servers.md says how it is built and run.
FROM python:3.12-slim-bookworm

# bubblewrap: the sandbox that graded code runs in, where the container is let (docs/servers.md).
# git and iproute2: some of the project's own tests use them.
# Debian keeps one version of each, and takes away those before it: none is named here.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git iproute2 \
    && rm -rf /var/lib/apt/lists/*

# As JupyterHub's images have it; a volume that belongs to 1000 can be written to.
ARG USER_ID=1000
RUN useradd --create-home --uid "$USER_ID" learner && install --directory --owner=learner /workbook /home/learner/work
USER $USER_ID
WORKDIR /workbook

# The set-up by itself: it stays as it is until one of these files changes.
COPY --chown=$USER_ID workbook.py pyproject.toml setup.py constraints.txt README.md LICENSE LICENSE-lessons ./
COPY --chown=$USER_ID bootstrap bootstrap
COPY --chown=$USER_ID notebooks/release notebooks/release
COPY --chown=$USER_ID course_lib course_lib
COPY --chown=$USER_ID autograder autograder
# The build of torch without CUDA's libraries: 0.2 GB instead of 2.7.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# dev: with what the tests need, which `test` installs at its first run else.
ARG EXTRA=course
RUN export CI=true PIP_NO_CACHE_DIR=1 WORKBOOK_TORCH_INDEX="$TORCH_INDEX"; \
    if [ "$EXTRA" = dev ]; then python3 workbook.py test --version; else python3 workbook.py start --help; fi
# For DockerSpawner: the version of your hub.
ARG JUPYTERHUB=
RUN if [ -n "$JUPYTERHUB" ]; then \
        .venv/bin/pip install --no-cache-dir --constraint constraints.txt "jupyterhub==$JUPYTERHUB"; fi
COPY --chown=$USER_ID . .

ENV PATH=/workbook/.venv/bin:$PATH WORKBOOK_DIR=/home/learner/work WORKBOOK_DATA=/home/learner/work/.data
VOLUME /home/learner/work
EXPOSE 8888
# Without a command it starts the course; `python3 workbook.py test` is the other of the two.
CMD ["python3", "workbook.py", "start", "--no-browser", "--ip", "0.0.0.0", "--port", "8888"]
