import { randomUUID } from 'node:crypto';
import { type ErrorCode, TandemError } from '../../machines/errors.ts';
import { pressesMs } from '../../media/dsp/dtmf-tones.ts';
import type { Sql } from '../../storage/database.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import { type CallRow, getCall, getCallById, isFinalState, listCallEvents } from '../../storage/queries/calls.ts';
import type { NodeRow } from '../../storage/queries/nodes.ts';
import { getRecording } from '../../storage/queries/recordings.ts';
import type { CallFeed } from '../call-feed.ts';
import { PRESSES_AHEAD_MS } from '../call-media.ts';
import { type PublicLeg, presentCall, presentCallEvent } from '../call-view.ts';
import type { NodeDialer } from '../dialer.actor.ts';
import type { CallControl, Dialer, NewLeg, PlaceCallRequest, RequestedSound } from '../dialer.ts';
import type { Logger } from '../logger.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterPhones } from './cluster-phones.ts';
import { type SendOptions, unreachable } from './node-commands.ts';

export interface ClusterDialerOptions {
  local: NodeDialer;
  phones: Pick<ClusterPhones, 'nodeOf'>;
  cluster: Cluster;
  nodes: Pick<NodeDirectory, 'node' | 'boot' | 'peers' | 'onRenewed'>;
  feed: CallFeed;
  sql: Sql;
  logger: Logger;
}

/**
 * Dials on the right node: places a call on the node with the fewest live calls, and sends a command to the node that
 * runs the call. With a single node everything is local.
 */
export function createClusterDialer(options: ClusterDialerOptions): Dialer {
  const { local, phones, cluster, nodes, feed, sql, logger } = options;
  cluster.serve(handlersOf(local));
  /** Placements sent to a node since its last report. */
  const underWay = new Map<string, { reportedAt: number; count: number }>();
  nodes.onRenewed((peers) => {
    const boots = new Set(peers.map(({ boot }) => boot));
    for (const boot of underWay.keys()) if (!boots.has(boot)) underWay.delete(boot);
  });

  const send = async <K extends CommandName>(
    boot: string,
    command: K,
    args: Commands[K]['args'],
    options?: SendOptions,
  ) => (await cluster.send(boot, command, args, options)) as Commands[K]['result'];

  /** Returns the other node that runs a live call; null if no other node does. */
  async function ownerOf(target: Target): Promise<{ boot: string; row: CallRow } | null> {
    const row = await getCall(sql, { workspaceId: target.workspaceId, idOrReference: target.callId });
    if (row === null || isFinalState(row.state) || row.ownerBoot === nodes.boot) return null;
    // The call's boot is lost, and no node has taken over yet.
    if (!nodes.peers().some(({ boot }) => boot === row.ownerBoot)) throw unreachable();
    return { boot: row.ownerBoot, row };
  }

  async function present({ row }: { row: CallRow }) {
    return presentCall((await getCallById(sql, row.callId)) ?? row);
  }

  function placeTo(): NodeRow | null {
    const own = local.report();
    const callsOf = (peer: NodeRow) => {
      const sent = underWay.get(peer.boot);
      const isSince = sent !== undefined && sent.reportedAt === peer.leaseUntil.getTime();
      return peer.liveCalls + (isSince ? sent.count : 0);
    };
    let best: NodeRow | null = null;
    let fewest = own.canPlaceCalls ? own.liveCalls : Number.POSITIVE_INFINITY;
    for (const peer of nodes.peers()) {
      if (!peer.canPlaceCalls || callsOf(peer) >= fewest) continue;
      best = peer;
      fewest = callsOf(peer);
    }
    if (best === null) return null;
    const reportedAt = best.leaseUntil.getTime();
    const sent = underWay.get(best.boot);
    underWay.set(best.boot, { reportedAt, count: sent?.reportedAt === reportedAt ? sent.count + 1 : 1 });
    return best;
  }

  /** Returns the node that should place the call; null: this one. A browser's call runs where its phone is if it can. */
  async function nodeFor({ workspaceId, agentUserId }: PlaceCallRequest): Promise<NodeRow | null> {
    if (agentUserId == null) return placeTo();
    const boot = await phones.nodeOf({ workspaceId, userId: agentUserId, purpose: 'agent' });
    if (boot === null && local.report().canPlaceCalls) return null;
    return nodes.peers().find((peer) => peer.boot === boot && peer.canPlaceCalls) ?? placeTo();
  }

  return {
    async place(request) {
      const elsewhere = await nodeFor(request);
      if (elsewhere === null) return await local.place(request);
      // The shared reference prevents two calls if both nodes place it.
      const named = { ...request, referenceId: request.referenceId ?? `qc2c-${randomUUID()}` };
      try {
        const { callId, ...placed } = await send(elsewhere.boot, 'place', named);
        const row = await getCallById(sql, callId);
        if (row === null) throw new TandemError('CALL_NOT_FOUND', 'The call was placed and is not stored.');
        return { ...placed, call: presentCall(row) };
      } catch (error) {
        if (!(error instanceof TandemError) || !isOtherNodesTrouble(error)) throw error;
        logger.warn({ peer: elsewhere.node, code: error.code }, 'placing a call here, as the other node cannot');
        return await local.place(named);
      }
    },

    checkCallbackUrl: (url, field) => local.checkCallbackUrl(url, field),

    checkSpeech: (speech) => local.checkSpeech(speech),

    async hangup(target) {
      const owner = await ownerOf(target);
      if (owner === null) return await local.hangup(target);
      await send(owner.boot, 'hangup', target);
      return await present(owner);
    },

    async control(target, control) {
      const owner = await ownerOf(target);
      if (owner === null) return await local.control(target, control);
      const isPressing = control.type === 'dtmf';
      const takesMs = isPressing ? PRESSES_AHEAD_MS + pressesMs(control.digits, control.durationMs) : 0;
      await send(owner.boot, 'control', { target, control }, { takesMs });
      return await present(owner);
    },

    async addLeg(target, leg) {
      const owner = await ownerOf(target);
      if (owner === null) return await local.addLeg(target, leg);
      return await send(owner.boot, 'addLeg', { target, leg });
    },

    async play(target, sound) {
      const owner = await ownerOf(target);
      if (owner === null) return await local.play(target, sound);
      return await send(owner.boot, 'play', { target, sound });
    },

    watch(callId, listener, signal) {
      feed.watch(callId, listener, signal);
      void (async () => {
        const row = await getCallById(sql, callId);
        if (row === null || isFinalState(row.state) || row.ownerBoot === nodes.boot) return;
        await cluster.watch(callId, listener, signal);
        // Repeat the last event, which may have been stored before the subscription took effect. The watcher loads
        // earlier ones.
        const last = (await listCallEvents(sql, { callId })).at(-1);
        if (last !== undefined && !signal.aborted) listener(presentCallEvent(last));
      })().catch((error) => logger.warn({ callId, err: error }, 'watching a call of another node failed'));
    },

    async refreshRecording(callId) {
      const row = await getCallById(sql, callId);
      const recording = row?.recordingId ? await getRecording(sql, row.recordingId) : null;
      const holder = nodes.peers().find(({ node }) => node === (recording?.node ?? row?.ownerNode));
      if (holder === undefined) return await local.refreshRecording(callId);
      return await send(holder.boot, 'refreshRecording', { callId }).catch((error) => {
        if (error instanceof TandemError && error.code === 'NODE_UNREACHABLE') return false;
        throw error;
      });
    },
  };
}

type Target = { workspaceId: string; callId: string };

/** Commands between nodes. All arguments and results are plain JSON. */
interface Commands {
  place: { args: PlaceCallRequest; result: { placed: boolean; replayed: boolean; callId: string } };
  hangup: { args: Target; result: null };
  control: { args: { target: Target; control: CallControl }; result: null };
  addLeg: { args: { target: Target; leg: NewLeg }; result: PublicLeg };
  play: { args: { target: Target; sound: RequestedSound }; result: { playbackId: string } };
  refreshRecording: { args: { callId: string }; result: boolean };
}
type CommandName = keyof Commands;

type Handlers = { [K in CommandName]: (args: Commands[K]['args']) => Promise<Commands[K]['result']> };

function handlersOf(local: NodeDialer): Handlers {
  return {
    async place(request) {
      const { call, ...placed } = await local.place(request);
      return { ...placed, callId: call.call_id };
    },
    hangup: async (target) => {
      await local.hangup(target);
      return null;
    },
    control: async ({ target, control }) => {
      await local.control(target, control);
      return null;
    },
    addLeg: ({ target, leg }) => local.addLeg(target, leg),
    play: ({ target, sound }) => local.play(target, sound),
    refreshRecording: ({ callId }) => local.refreshRecording(callId),
  };
}

const OTHER_NODES_TROUBLE: ReadonlySet<ErrorCode> = new Set([
  'NODE_UNREACHABLE',
  'SHUTTING_DOWN',
  'STORAGE_UNAVAILABLE',
  'CARRIER_LINE_DOWN',
  // If the trunk has no channel, this node refuses the call too.
  'no_free_channel',
]);

/** The other node did not place the call, so this one may. */
function isOtherNodesTrouble({ code }: TandemError): boolean {
  return OTHER_NODES_TROUBLE.has(code);
}
