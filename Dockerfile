# Tandem in one image: `docker build -t tandem .`, or `docker compose up --build` with everything around it.
#
# The tag names one exact Node release, the one of the `node` dependency in package.json (a test compares the two), so
# that the container and `npm start` run the same runtime. A CI with access to the image registry can add the digest
# (`...-slim@sha256:...`); the tag alone stays readable.

FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The `node` package is the runtime of a checkout; here the base image is.
RUN npm ci --omit=dev --no-audit --no-fund \
 && rm -rf node_modules/node node_modules/.bin/node

FROM node:24.21.0-bookworm-slim
# A running container installs nothing: leave intruders no package manager.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
    /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
 && install -d -o node -g node -m 0700 /data
# The native recogniser, several times as fast as the WebAssembly one, and the unpacker of most speech models.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libpocketsphinx3 pocketsphinx-en-us bzip2 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
# .dockerignore lists what is copied. Root owns it, so the process cannot change it.
COPY . .

# The operator sets SIP_HOST and RTP_HOST, the address at which carriers reach this container.
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    TANDEM_DATA_DIR=/data \
    MODELS_DIR=/data/models \
    RTP_PORT_MIN=20000 \
    RTP_PORT_MAX=20399

# Numeric, so that an orchestrator can tell that it is not root. It is the user `node` of the base image.
USER 1000:1000
VOLUME /data

EXPOSE 8080/tcp
EXPOSE 5060/udp
EXPOSE 5060/tcp
EXPOSE 20000-20399/udp

# The first start makes a database; after that a second is enough.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]

# SIGTERM drains: live calls may finish, so stop with patience (`docker stop --time 60`). Node as PID 1 gets the signal
# because main.ts asks for it; `--init` is wanted only to reap what an embedded Postgres may leave behind.
STOPSIGNAL SIGTERM
CMD ["node", "main.ts"]
