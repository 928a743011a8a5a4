# The operator's image: docker build -t REGISTRY/gangsched:VERSION .
FROM python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7 AS build
WORKDIR /src
COPY hack/uv.txt ./
RUN pip install --no-cache-dir --require-hashes --requirement uv.txt
ENV UV_PROJECT_ENVIRONMENT=/opt/gangsched \
    UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PYTHON_DOWNLOADS=never
# The dependencies are a layer of their own, which a change of the code leaves as it is.
COPY pyproject.toml uv.lock ./
RUN uv sync --locked --no-default-groups --extra devices --no-install-project
COPY README.md LICENSE ./
COPY gangsched gangsched
RUN uv sync --locked --only-group release --no-install-project --inexact \
 && uv sync --locked --no-default-groups --extra devices --no-editable --no-build-isolation

FROM python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
COPY --from=build /opt/gangsched /opt/gangsched
# It writes no file: the root file system may be read-only.
ENV PATH=/opt/gangsched/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["gangsched"]
CMD ["run"]
