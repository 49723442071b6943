#!/bin/sh
# Starts kamailio as the dispatcher in front of several SIP servers. Reads:
#   SIP_SERVERS     SIP servers of the nodes, such as "10.0.0.11:5062 10.0.0.12:5064"
#   LISTEN_HOST     address of this machine or container
#   SIP_HOST        address at which carriers reach it
#   SIP_PORT        port for carriers, over UDP and TCP; default 5060
#   INNER_SIP_PORT  port for the SIP servers, over UDP; default 5070
#   RUN_DIR         folder for the list of SIP servers and the control socket; default /tmp
# Further arguments go to kamailio, such as -c to check the configuration.
set -eu
run_dir="${RUN_DIR:-/tmp}"
export SIP_HOST LISTEN_HOST SIP_PORT="${SIP_PORT:-5060}" INNER_SIP_PORT="${INNER_SIP_PORT:-5070}"
export INNER_SOCKET="udp:$LISTEN_HOST:$INNER_SIP_PORT"
export CONTROL_SOCKET="unix:$run_dir/kamailio_ctl"
export SIP_SERVER_LIST="$run_dir/dispatcher.list"
for server in $SIP_SERVERS; do
  echo "1 sip:$server;transport=udp 0 0"
done >"$SIP_SERVER_LIST"
# In the foreground, with its log on standard error.
exec kamailio -DD -E -m 64 -f "$(dirname "$0")/kamailio.cfg" -w "$run_dir" -Y "$run_dir" -P "$run_dir/kamailio.pid" "$@"
