# Tandem in one image: `docker build -t tandem .`, or `docker compose up --build` with everything around it.
#
# The tag names one exact Node release, the one of the `node` dependency in package.json (a test compares the two), so
# that the container and `npm start` run the same runtime. A CI with access to the registry can add the digest
# (`...-slim@sha256:...`); the tag alone says which release is meant, and can be read by a person.

FROM node:24.21.0-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The `node` package is the runtime of a checkout; here the base image is.
RUN npm ci --omit=dev --no-audit --no-fund \
 && rm -rf node_modules/node node_modules/.bin/node

FROM node:24.21.0-bookworm-slim
# Nothing is installed in a running container: no package manager for whoever breaks in.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
    /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
 && install -d -o node -g node -m 0700 /data
# The native recogniser, several times as fast as the one in WebAssembly, and what most speech models are packed with.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libpocketsphinx3 pocketsphinx-en-us bzip2 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
# What is copied is the list in .dockerignore. It belongs to root, and the process cannot change it.
COPY . .

# SIP_HOST and RTP_HOST, the addresses carriers reach this container by, are for whoever runs it to say.
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
