# The service without MongoDB; set KALENDS_MONGODB_URI to the connection string of your own.

FROM python:3.13-slim AS dependencies
RUN python -m venv /venv
COPY requirements.txt .
RUN /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.txt \
    && /venv/bin/pip uninstall --yes --quiet pip \
    && printf '#!/bin/sh\nexec /venv/bin/python -m service "$@"\n' > /venv/bin/kalends \
    && chmod 755 /venv/bin/kalends

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home kalends
COPY --from=dependencies /venv /venv
WORKDIR /app
COPY config config
COPY schemas schemas
COPY handlers handlers
COPY service service
ENV PATH=/venv/bin:$PATH \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    KALENDS_HOST=0.0.0.0 \
    KALENDS_PORT=8080 \
    KALENDS_AUTH=token
# By number: Kubernetes cannot tell from a name that it is not root (runAsNonRoot).
USER 10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['KALENDS_PORT']}/health/ready\", timeout=4)"]
ENTRYPOINT ["kalends"]
CMD ["serve"]
