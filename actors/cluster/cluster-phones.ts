import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import type { Sql } from '../../storage/database.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import { getCallById, isFinalState } from '../../storage/queries/calls.ts';
import type { Logger } from '../logger.ts';
import { homeOfToken, type NodePhoneDesk, type PhoneUser } from '../phones/phone-desk.actor.ts';
import type {
  ConnectedPhone,
  MintedToken,
  PhoneDesk,
  PhoneHolder,
  PhoneNotice,
  PhoneOutlet,
  PhoneRequest,
} from '../phones/phone-desk.ts';
import type { Cluster } from './cluster.ts';
import { type ClusterRings, createClusterRings } from './cluster-rings.ts';
import { createUnheardReports, oneAfterTheOther } from './peer-messages.ts';

export interface ClusterPhonesOptions {
  local: NodePhoneDesk;
  cluster: Cluster;
  nodes: Pick<NodeDirectory, 'boot' | 'peers' | 'onRenewed'>;
  sql: Sql;
  logger: Logger;
}

export interface ClusterPhones extends PhoneDesk, ClusterRings {
  /** Returns the boot of another node that has a phone of the user, or a token for one. Null: this node, or none. */
  nodeOf(user: PhoneUser): Promise<string | null>;
}

/**
 * Connects phones whose sockets may be on any node. A phone lives on the node that created its token; if the token
 * names a call, that is the call's node. A socket on another node is relayed in both directions. A call rings on the
 * phones of all nodes.
 */
export function createClusterPhones({ local, cluster, nodes, sql, logger }: ClusterPhonesOptions): ClusterPhones {
  /** Phones of this node with sockets on another one, by connection. */
  const remote = new Map<string, { phone: ConnectedPhone; boot: string }>();
  /** Sockets of this node with phones on another one, by connection. */
  const sockets = new Map<string, { outlet: PhoneOutlet; boot: string }>();
  const unheard = createUnheardReports(nodes);
  const rings = createClusterRings({ local, cluster, nodes, unheard, logger });

  const send = async <K extends CommandName>(boot: string, command: K, args: Commands[K]['args']) =>
    (await cluster.send(boot, command, args)) as Commands[K]['result'];
  const isPeer = (boot: string) => nodes.peers().some((peer) => peer.boot === boot);

  const handlers: { [K in CommandName]: (args: Commands[K]['args']) => Promise<Commands[K]['result']> } = {
    async 'phones.mint'({ holder }) {
      const { token, expiresAt } = await local.mint(holder);
      return { token, expiresAtMs: expiresAt.getTime() };
    },
    'phones.reaches': async (user) => local.reaches(user),
    async 'phones.open'({ connection, boot, by, token }) {
      const phone = local[by](token, outletAt({ connection, boot }));
      if (phone === null) return null;
      remote.set(connection, { phone, boot });
      return { holder: phone.holder };
    },
    async 'phones.request'({ connection, request }) {
      const phone = remote.get(connection)?.phone;
      if (phone === undefined) throw new TandemError('CALL_NOT_LIVE', 'The phone is not connected any more.');
      return await phone.request(request);
    },
    async 'phones.close'({ connection, isLeaving }) {
      const phone = remote.get(connection)?.phone;
      remote.delete(connection);
      if (isLeaving) phone?.leave();
      else phone?.detach();
      return null;
    },
    async 'phones.notice'({ connection, notice }) {
      const outlet = sockets.get(connection)?.outlet;
      // The phone's node has not learned of it. It must not ring a phone without a socket.
      if (outlet === undefined) throw new TandemError('CALL_NOT_LIVE', 'The phone has no socket here any more.');
      outlet.send(notice);
      return null;
    },
    async 'phones.end'({ connection, code, reason }) {
      sockets.get(connection)?.outlet.close(code, reason);
      sockets.delete(connection);
      return null;
    },
  };
  cluster.serve(handlers);
  nodes.onRenewed(() => {
    for (const [connection, { boot, phone }] of remote) {
      if (isPeer(boot)) continue;
      remote.delete(connection);
      phone.detach();
    }
    for (const [connection, { boot, outlet }] of sockets) {
      if (isPeer(boot)) continue;
      sockets.delete(connection);
      outlet.close(1012, 'SHUTTING_DOWN');
    }
  });

  /** Sends a phone's notices to its socket on another node. */
  function outletAt({ connection, boot }: { connection: string; boot: string }): PhoneOutlet {
    const inOrder = oneAfterTheOther();
    const end = (code: number, reason: string) => () => send(boot, 'phones.end', { connection, code, reason });
    const deliver = (work: () => Promise<unknown>, endIfLost: () => Promise<unknown>) =>
      void inOrder(work).catch((error) => {
        logger.warn({ err: error }, 'a phone on another node was lost');
        remote.get(connection)?.phone.detach();
        remote.delete(connection);
        unheard.repeat(boot, endIfLost);
      });
    return {
      // A socket that missed a notice closes, so that its page resumes.
      send: (notice) => deliver(() => send(boot, 'phones.notice', { connection, notice }), end(1012, 'SHUTTING_DOWN')),
      close(code, reason) {
        remote.delete(connection);
        deliver(end(code, reason), end(code, reason));
      },
    };
  }

  async function attach(by: 'connect' | 'resume', token: string, outlet: PhoneOutlet): Promise<ConnectedPhone | null> {
    const boot = homeOfToken(token);
    if (boot === null || !isPeer(boot)) return local[by](token, outlet);
    const connection = randomUUID();
    // The first notice may come before the response.
    sockets.set(connection, { outlet, boot });
    try {
      const opened = await send(boot, 'phones.open', { connection, boot: nodes.boot, by, token });
      if (opened === null) sockets.delete(connection);
      return opened && relayedPhone({ connection, boot, holder: opened.holder });
    } catch (error) {
      sockets.delete(connection);
      throw error;
    }
  }

  function relayedPhone(at: { connection: string; boot: string; holder: PhoneHolder }): ConnectedPhone {
    const { connection, boot, holder } = at;
    const inOrder = oneAfterTheOther();
    const close = (isLeaving: boolean) => {
      if (!sockets.delete(connection)) return;
      const report = () => send(boot, 'phones.close', { connection, isLeaving });
      inOrder(report).catch((error) => {
        logger.warn({ err: error }, 'a phone of another node could not be told that its socket is closed');
        unheard.repeat(boot, report);
      });
    };
    return {
      holder,
      request: (request) => inOrder(() => send(boot, 'phones.request', { connection, request })),
      detach: () => close(false),
      leave: () => close(true),
    };
  }

  return {
    get unavailable() {
      return local.unavailable;
    },
    async mint(holder) {
      const row = holder.callId === null || nodes.peers().length === 0 ? null : await getCallById(sql, holder.callId);
      if (row === null || isFinalState(row.state) || !isPeer(row.ownerBoot)) return await local.mint(holder);
      const { token, expiresAtMs } = await send(row.ownerBoot, 'phones.mint', { holder });
      return { token, expiresAt: new Date(expiresAtMs) };
    },
    dial: rings.dial,
    drain: rings.drain,
    connect: (token, outlet) => attach('connect', token, outlet),
    resume: (token, outlet) => attach('resume', token, outlet),
    async nodeOf(user) {
      const peers = nodes.peers();
      if (peers.length === 0 || local.reaches(user)) return null;
      const reached = await Promise.all(
        peers.map(({ boot }) =>
          send(boot, 'phones.reaches', user).then(
            (isThere) => (isThere ? boot : null),
            () => null,
          ),
        ),
      );
      return reached.find((boot) => boot !== null) ?? null;
    },
  };
}

interface Commands {
  'phones.mint': { args: { holder: PhoneHolder }; result: { token: MintedToken['token']; expiresAtMs: number } };
  'phones.reaches': { args: PhoneUser; result: boolean };
  'phones.open': {
    /** `boot` is the node with the socket. */
    args: { connection: string; boot: string; by: 'connect' | 'resume'; token: string };
    result: { holder: PhoneHolder } | null;
  };
  'phones.request': { args: { connection: string; request: PhoneRequest }; result: object };
  'phones.close': { args: { connection: string; isLeaving: boolean }; result: null };
  'phones.notice': { args: { connection: string; notice: PhoneNotice }; result: null };
  'phones.end': { args: { connection: string; code: number; reason: string }; result: null };
}
type CommandName = keyof Commands;
