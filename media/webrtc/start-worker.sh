#!/bin/sh
# Starts the worker program of mediasoup with nothing of our environment, which contains keys, and in a session of its
# own: Ctrl-C in a terminal reaches a whole process group, and the worker would end before the calls that may finish.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
worker=${MEDIASOUP_WORKER_BIN:-$here/../../node_modules/mediasoup/worker/out/Release/mediasoup-worker}
exec $(command -v setsid) env -i MEDIASOUP_VERSION="$MEDIASOUP_VERSION" "$worker" "$@"
