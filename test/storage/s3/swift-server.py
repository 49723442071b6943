"""OpenStack Swift with its S3 API, all servers in one process on loopback.

Usage: swift-server.py FOLDER SECRET
Prints `listening PORT` when ready; the access key is `tandem:test`. Stops when its standard input ends.
Needs Debian's python3-swift.
"""
import eventlet

eventlet.monkey_patch()

import os
import sys
from array import array

from eventlet import listen, patcher, spawn, tpool, wsgi
from swift.account.server import AccountController
from swift.common import utils
from swift.common.ring import RingData
from swift.common.wsgi import SwiftHttpProtocol, loadapp
from swift.container.server import ContainerController
from swift.obj.server import ObjectController

# Without memcached, which nothing here needs: tempauth answers S3 signatures by itself.
PROXY = """
[DEFAULT]
swift_dir = {folder}
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats s3api tempauth bulk slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
# Parts of 5 MiB, as S3 demands, take most of the time of a test.
min_segment_size = 1
[filter:tempauth]
use = egg:swift#tempauth
user_tandem_test = {secret} .admin
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
"""


class Nowhere:
    def write(self, text):
        pass


def serve(socket, app):
    spawn(wsgi.server, socket, app, Nowhere(), protocol=SwiftHttpProtocol)


def main(folder, secret):
    utils.HASH_PATH_PREFIX = utils.HASH_PATH_SUFFIX = b'tandem'
    utils.validate_hash_conf = lambda: None
    os.makedirs(os.path.join(folder, 'disk', 'tmp'))
    conf = {'devices': folder, 'swift_dir': folder, 'mount_check': 'false', 'fallocate_reserve': '0'}
    servers = {'account': AccountController, 'container': ContainerController, 'object': ObjectController}
    sockets = {name: listen(('127.0.0.1', 0)) for name in servers}
    for name, socket in sockets.items():
        port = socket.getsockname()[1]
        disk = {'id': 0, 'region': 1, 'zone': 0, 'device': 'disk', 'ip': '127.0.0.1', 'port': port, 'weight': 1.0}
        RingData([array('H', [0])], [disk], 32).save(os.path.join(folder, name + '.ring.gz'))
    for name, controller in servers.items():
        serve(sockets[name], controller(conf))
    config = os.path.join(folder, 'proxy-server.conf')
    with open(config, 'w') as file:
        file.write(PROXY.format(folder=folder, secret=secret))
    proxy = listen(('127.0.0.1', 0))
    serve(proxy, loadapp(config, global_conf={'log_name': 'proxy'}))
    print('listening', proxy.getsockname()[1], flush=True)
    while tpool.execute(patcher.original('os').read, 0, 1024):
        pass
    os._exit(0)


main(*sys.argv[1:])
