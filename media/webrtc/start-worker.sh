#!/bin/sh
# Starts mediasoup's worker program without our environment, which contains keys, and in its own session: Ctrl-C in a
# terminal reaches the whole process group, and the worker would end before calls could finish.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
worker=${MEDIASOUP_WORKER_BIN:-$here/../../node_modules/mediasoup/worker/out/Release/mediasoup-worker}
exec $(command -v setsid) env -i MEDIASOUP_VERSION="$MEDIASOUP_VERSION" "$worker" "$@"
