import dgram from 'node:dgram';
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { Server, Socket } from 'node:net';

/**
 * Blocks network access. Preloaded in every thread of the process that reads documents, including threads of libraries.
 * Some libraries can fetch what a document refers to, and Node's permission model does not cover the network.
 */
function refuse(): never {
  throw new Error('There is no network here.');
}

Socket.prototype.connect = refuse;
Server.prototype.listen = refuse;
Object.assign(dgram.Socket.prototype, { bind: refuse, connect: refuse, send: refuse });
for (const names of [dns, dns.promises, dns.Resolver.prototype, dns.promises.Resolver.prototype]) {
  for (const name of Object.keys(names)) {
    if (/^(lookup|resolve|reverse)/.test(name)) Object.assign(names, { [name]: refuse });
  }
}
syncBuiltinESMExports();
