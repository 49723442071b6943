# Tandem in one image: `docker build -t tandem .`, or `docker compose up --build` for Tandem with its services.
#
# The tag pins the Node release of the `node` dependency in package.json, so that the container and `npm start` use the
# same runtime. A test compares the two. If your CI can access the image registry, it can add the digest
# (`...-slim@sha256:...`).

FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY client/package.json ./client/
# After installing, npm runs bin/install, which fetches the WebRTC worker and removes package files that Tandem never loads.
COPY bin/install ./bin/install
COPY media/webrtc ./media/webrtc
# A checkout gets its runtime from the `node` package. Here the base image provides it.
RUN npm ci --omit=dev --no-audit --no-fund \
 && rm -rf node_modules/node node_modules/.bin/node

# The console needs Vite and React to be built, but not to run.
FROM node:24.21.0-bookworm-slim AS console
WORKDIR /app
COPY package.json package-lock.json ./
COPY client ./client
COPY console ./console
RUN npm ci --ignore-scripts --no-audit --no-fund && node console/build.ts

FROM node:24.21.0-bookworm-slim
# A running container installs nothing, so remove the package managers that an attacker could use.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
    /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
 && install -d -o node -g node -m 0700 /data
# The native recogniser is several times as fast as the WebAssembly one. bzip2 unpacks most speech models.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libpocketsphinx3 pocketsphinx-en-us bzip2 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
# .dockerignore lists the copied files. Root owns them, so the process cannot change them.
COPY . .
COPY --from=console /app/console/dist ./console/dist

# The operator sets SIP_HOST and RTP_HOST, the address at which carriers reach this container.
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    TANDEM_DATA_DIR=/data \
    MODELS_DIR=/data/models \
    WEBRTC_PORT=30000 \
    RTP_PORT_MIN=20000 \
    RTP_PORT_MAX=20399

# The user `node` of the base image. Numeric, so that an orchestrator can verify that it is not root.
USER 1000:1000
VOLUME /data

EXPOSE 8080/tcp
EXPOSE 5060/udp
EXPOSE 5060/tcp
EXPOSE 20000-20399/udp
EXPOSE 30000/udp

# The first start creates a database. Later starts take about a second.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 8080) + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]

# SIGTERM drains live calls, so stop with a long timeout (`docker stop --time 60`). Node as PID 1 receives the signal
# because main.ts installs a handler. `--init` is needed only to reap processes that an embedded Postgres may leave behind.
STOPSIGNAL SIGTERM
CMD ["node", "main.ts"]
