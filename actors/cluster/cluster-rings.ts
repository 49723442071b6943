import { randomUUID } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import type { HangupCause, LegEvent, RemoteMedia } from '../../machines/events.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { LegDialog } from '../../sip/sip-gateway.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import type { Logger } from '../logger.ts';
import {
  type BrowserDial,
  BUSY,
  type RingingLeg,
  type RingRequest,
  UNREACHED,
  type Unreached,
} from '../phones/browser-leg.ts';
import type { NodePhoneDesk } from '../phones/phone-desk.actor.ts';
import type { MediaRequest, PhoneMedia } from '../phones/phone-media.ts';
import type { Cluster } from './cluster.ts';
import { forkLeg, type StartBranch } from './forked-leg.ts';
import { insistently, isUnacknowledged, oneAfterTheOther, type UnheardReports } from './peer-messages.ts';

export interface ClusterRingsOptions {
  local: Pick<NodePhoneDesk, 'dial' | 'ring' | 'openingMedia'>;
  cluster: Pick<Cluster, 'send' | 'serve'>;
  nodes: Pick<NodeDirectory, 'boot' | 'peers' | 'onRenewed'>;
  unheard: UnheardReports;
  logger: Logger;
}

export interface ClusterRings extends Pick<NodePhoneDesk, 'dial'> {
  /** Waits until no phone of this node is in a call of another one. Ends those calls after `graceMs`. */
  drain(graceMs: number): Promise<void>;
}

/**
 * Rings a user's phones on all nodes. Each other node rings its own phones and reports their events; requests about
 * media come back to the node of the call, to which the browser sends its audio directly.
 */
export function createClusterRings({ local, cluster, nodes, unheard, logger }: ClusterRingsOptions): ClusterRings {
  /** Branches of this node's legs on other nodes, by id. */
  const branches = new Map<string, RemoteBranch>();
  /** Last commands to ended branches, by id, until the other node has them. */
  const endings = new Map<string, RingCommand>();
  /** Legs of other nodes that ring here, by the id of their branch. */
  const rings = new Map<string, RingHere>();
  /** Resolved when no phone of this node is in a call of another one. Null unless the node drains. */
  let idle: PromiseWithResolvers<void> | null = null;

  const send = async <K extends CommandName>(boot: string, command: K, args: Commands[K]['args']) =>
    (await insistently(() => cluster.send(boot, command, args))) as Commands[K]['result'];

  const handlers: { [K in CommandName]: (args: Commands[K]['args']) => Promise<Commands[K]['result']> } = {
    async 'phones.ring'({ id, boot, request }) {
      ringHere(id, boot, request);
      return null;
    },
    async 'phones.command'({ id, command }) {
      commandHere(id, command);
      return null;
    },
    async 'phones.event'({ id, event }) {
      branches.get(id)?.receive(event);
      return { isLive: branches.has(id), ending: endings.get(id) };
    },
    'phones.open_media': async ({ id }) => (await branches.get(id)?.openMedia()) ?? null,
    async 'phones.media'({ id, request }) {
      const media = branches.get(id)?.media ?? null;
      if (media === null) throw new TandemError('CALL_NOT_LIVE', 'The call has ended.');
      return await media.carryOut(request);
    },
  };
  cluster.serve(handlers);
  nodes.onRenewed((peers) => {
    const boots = new Set(peers.map(({ boot }) => boot));
    for (const branch of branches.values()) if (!boots.has(branch.boot)) branch.lose();
    for (const ring of rings.values()) if (!boots.has(ring.boot)) ring.lose();
  });

  function branchOn(boot: string, request: SentRequest): StartBranch {
    return ({ onEvent, openMedia, onUnreached }) => {
      const id = randomUUID();
      const inOrder = oneAfterTheOther();
      const closing = new AbortController();
      let isThere = false;
      let isAnswering = false;
      let isAnswered = false;

      const rung = async () => {
        try {
          await send(boot, 'phones.ring', { id, boot: nodes.boot, request });
          isThere = true;
        } catch (error) {
          // Otherwise only the response was lost.
          isThere = !isUnacknowledged(error);
          throw error;
        }
      };
      const tell = (command: RingCommand) =>
        inOrder(async () => {
          if (isThere) await send(boot, 'phones.command', { id, command });
        }).catch((error) => {
          logger.warn({ callId: request.call.call_id, err: error }, 'phones on another node were lost');
          giveUp();
          const last = endings.get(id) ?? HANG_UP_LOST;
          unheard.repeat(boot, () => send(boot, 'phones.command', { id, command: last }));
        });
      const end = () => {
        closing.abort();
        return branches.delete(id);
      };
      const endBy = (command: RingCommand) => {
        end();
        endings.set(id, command);
        void tell(command).finally(() => endings.delete(id));
      };
      const giveUp = () => {
        if (!end()) return;
        if (isAnswered) onEvent(LOST);
        else if (isAnswering) onEvent({ type: 'leg.refused', ...UNREACHED });
        else onUnreached(UNREACHED);
      };

      const branch: RemoteBranch = {
        boot,
        media: null,
        receive(event) {
          if (event.type === 'leg.unreached') return onUnreached(event.isBusy ? BUSY : UNREACHED);
          if (event.type === 'leg.ended' && !isAnswered) return giveUp();
          if (event.type === 'leg.answered') isAnswered = true;
          if (isFinal(event)) end();
          onEvent(event);
        },
        async openMedia() {
          isAnswering = true;
          const onLost = (detail: string) => {
            void tell(HANG_UP_LOST);
            if (end()) onEvent({ type: 'leg.lost', detail });
          };
          branch.media = await openMedia({ signal: closing.signal, onLost }).catch((error) => {
            if (closing.signal.aborted) return null;
            throw error;
          });
          void branch.media?.connected.then((remote) => void tell({ type: 'connected', remote }));
          return branch.media && { rtpCapabilities: branch.media.rtpCapabilities };
        },
        lose() {
          void tell(HANG_UP_LOST);
          giveUp();
        },
      };
      branches.set(id, branch);
      inOrder(rung).catch((error) => {
        logger.warn({ callId: request.call.call_id, err: error }, 'phones on another node do not ring');
        branch.lose();
      });
      return {
        hangup: (cause) => endBy({ type: 'hangup', cause }),
        answeredElsewhere: () => endBy({ type: 'answered_elsewhere' }),
        hold: (isHeld) => void tell({ type: 'hold', isHeld }),
        offerAgain() {},
      };
    };
  }

  function ringHere(id: string, boot: string, request: SentRequest): void {
    const inOrder = oneAfterTheOther();
    const connected = Promise.withResolvers<RemoteMedia>();
    const report = (event: BranchEvent) => {
      if (!rings.has(id)) return;
      if (isFinal(event)) forget(id);
      inOrder(() => send(boot, 'phones.event', { id, event })).then(
        ({ isLive, ending }) => {
          // A report may overtake the command that ended the leg.
          if (!isLive) commandHere(id, ending ?? { type: 'hangup', cause: 'NORMAL_CLEARING' });
        },
        (error) => {
          logger.warn({ callId: request.call.call_id, err: error }, 'the node of a call was not told about its phone');
          commandHere(id, HANG_UP_LOST);
          const last = isFinal(event) ? event : LOST;
          unheard.repeat(boot, () => send(boot, 'phones.event', { id, event: last }));
        },
      );
    };
    let reported: Unreached | null = null;
    const leg = local.ring(
      {
        ...request,
        signal: new AbortController().signal,
        onEvent(event) {
          reported = null;
          report(event);
        },
      },
      {
        onUnreached(reason) {
          if (reason !== reported) report({ type: 'leg.unreached', isBusy: reason === BUSY });
          reported = reason;
        },
        async openMedia() {
          const opened = await send(boot, 'phones.open_media', { id });
          if (opened === null) return null;
          const ring = rings.get(id);
          if (ring !== undefined) ring.isAnswered = true;
          const { rtpCapabilities } = opened;
          const carryOut = (asked: MediaRequest) => send(boot, 'phones.media', { id, request: asked });
          return { rtpCapabilities, connected: connected.promise, carryOut };
        },
      },
    );
    const lose = () => {
      report(LOST);
      leg.hangup('NETWORK_OUT_OF_ORDER');
    };
    rings.set(id, { boot, leg, connected, lose, isAnswered: false });
  }

  function forget(id: string): void {
    rings.delete(id);
    resolveIfIdle();
  }

  function resolveIfIdle(): void {
    if (![...rings.values()].some(({ isAnswered }) => isAnswered)) idle?.resolve();
  }

  /** Commands the leg of another node; ignored once it has ended. */
  function commandHere(id: string, command: RingCommand): void {
    const ring = rings.get(id);
    if (ring === undefined) return;
    const { leg, connected } = ring;
    if (command.type === 'connected') connected.resolve(command.remote);
    else if (command.type === 'hold') leg.hold(command.isHeld);
    else {
      forget(id);
      if (command.type === 'hangup') leg.hangup(command.cause);
      else leg.answeredElsewhere();
    }
  }

  return {
    async drain(graceMs) {
      idle = Promise.withResolvers();
      resolveIfIdle();
      if ((await within(idle.promise, { ms: graceMs })) !== LATE) return;
      for (const ring of rings.values()) ring.lose();
    },
    dial(dial: BrowserDial): LegDialog {
      const peers = nodes.peers();
      if (peers.length === 0) return local.dial(dial);
      const { localMedia, signal, onEvent, ...request } = dial;
      const here: StartBranch = ({ openMedia, onUnreached, ...options }) =>
        local.ring({ ...request, ...options }, { openMedia, onUnreached });
      const elsewhere = peers.map(({ boot }) => branchOn(boot, request));
      return forkLeg({ signal, onEvent, openMedia: local.openingMedia(localMedia) }, [here, ...elsewhere]);
    },
  };
}

/** Leg of this node that rings phones of another one. */
interface RemoteBranch {
  boot: string;
  media: PhoneMedia | null;
  receive(event: BranchEvent): void;
  openMedia(): Promise<Pick<PhoneMedia, 'rtpCapabilities'> | null>;
  /** Ends it because the other node seems lost, and reports the end to it in case it lives. */
  lose(): void;
}

/** Leg of another node that rings phones of this one. */
interface RingHere {
  boot: string;
  leg: RingingLeg;
  connected: PromiseWithResolvers<RemoteMedia>;
  /** By a phone of this node; its audio may not flow yet. */
  isAnswered: boolean;
  /** Like `RemoteBranch.lose`. */
  lose(): void;
}

/** A ring request as other nodes get it. */
type SentRequest = Omit<RingRequest, 'signal' | 'onEvent'>;

/** Reported by the node of the phones. */
type BranchEvent = LegEvent | { type: 'leg.unreached'; isBusy: boolean };

/** Sent by the node of the call. */
type RingCommand =
  | { type: 'hangup'; cause: HangupCause }
  | { type: 'answered_elsewhere' }
  | { type: 'hold'; isHeld: boolean }
  /** Audio flows. */
  | { type: 'connected'; remote: RemoteMedia };

/** `id` names the branch. All arguments and results are plain JSON. */
interface Commands {
  /** `boot` is the node of the call. */
  'phones.ring': { args: { id: string; boot: string; request: SentRequest }; result: null };
  'phones.command': { args: { id: string; command: RingCommand }; result: null };
  'phones.event': {
    args: { id: string; event: BranchEvent };
    result: { isLive: boolean; ending?: RingCommand | undefined };
  };
  /** Null: another phone was faster, or the call has ended. */
  'phones.open_media': { args: { id: string }; result: Pick<PhoneMedia, 'rtpCapabilities'> | null };
  'phones.media': { args: { id: string; request: MediaRequest }; result: object };
}
type CommandName = keyof Commands;

const LOST: LegEvent = { type: 'leg.ended', by: 'peer', hangupCause: 'NETWORK_OUT_OF_ORDER' };
const HANG_UP_LOST: RingCommand = { type: 'hangup', cause: 'NETWORK_OUT_OF_ORDER' };

function isFinal({ type }: BranchEvent): boolean {
  return type === 'leg.refused' || type === 'leg.ended' || type === 'leg.lost';
}
