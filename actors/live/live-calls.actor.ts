import { isLegName } from '../../machines/events.ts';
import type { MediaMeasurement, MediaSession } from '../../media/media-plane.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import type { CallRegistry, LiveCall } from '../call-registry.ts';
import type { TranscriptDesk } from '../call-transcript.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { TranscriberHypothesis } from '../leg-transcriber.ts';
import type { Logger } from '../logger.ts';
import type { LiveCalls, LiveNews } from './live-calls.ts';

export interface NodeLiveCalls extends LiveCalls, Disposable {
  changed(callId: string): void;
  /** A media worker has measured a call of this node. */
  measured(call: LiveCall, measurement: MediaMeasurement): void;
  /** A recogniser has a partial transcript for a leg of this node. */
  publishHypothesis(call: LiveCall, hypothesis: TranscriberHypothesis): void;
}

export interface LiveCallsOptions {
  registry: CallRegistry;
  transcripts: Pick<TranscriptDesk, 'setHypotheses'>;
  cluster: Pick<Cluster, 'broadcast' | 'subscribe'>;
  nodes: Pick<NodeDirectory, 'boot' | 'peers' | 'onRenewed'>;
  clock: Clock;
  logger: Logger;
}

/** Longest delay until watched calls, including new ones, are measured. */
const ADJUST_EVERY_MS = 1000;
/** Interest of a node expires after this time. Nodes repeat it with each renewal, every second. */
const INTEREST_MS = 5000;

interface Watched {
  listeners: Set<(news: LiveNews) => void>;
  abort: AbortController;
  isSubscribed: boolean;
}

/** Message between nodes: the workspaces watched on the sender. */
interface Interest {
  boot: string;
  workspaceIds: string[];
}

const INTEREST_TOPIC = 'live.interest';
const newsTopicOf = (workspaceId: string) => `live.news.${workspaceId}`;

/**
 * Watches live calls of this node and, through the relay, of others. Each node announces which workspaces are watched
 * on it. The others then measure calls of these workspaces and send their news.
 */
export function createLiveCalls({
  registry,
  transcripts,
  cluster,
  nodes,
  clock,
  logger,
}: LiveCallsOptions): NodeLiveCalls {
  const closing = new AbortController();
  const watched = new Map<string, Watched>();
  /** When other nodes' interest ends, by workspace. */
  const elsewhere = new Map<string, number>();
  const measuredSessions = new WeakSet<MediaSession>();
  let timer: unknown = null;
  let isListening = false;

  const isWantedElsewhere = (workspaceId: string) => (elsewhere.get(workspaceId) ?? 0) > clock.monotonicMs();
  const isWanted = (workspaceId: string) => watched.has(workspaceId) || isWantedElsewhere(workspaceId);

  function notify(workspaceId: string, news: LiveNews): void {
    for (const listener of watched.get(workspaceId)?.listeners ?? []) {
      try {
        listener(news);
      } catch (error) {
        logger.error({ err: error }, 'watcher of live calls threw');
      }
    }
  }

  function publish(workspaceId: string, news: LiveNews): void {
    notify(workspaceId, news);
    if (isWantedElsewhere(workspaceId)) cluster.broadcast(newsTopicOf(workspaceId), news);
  }

  /** Starts and stops measurements to match the interest, until none is left. */
  function adjust(): void {
    clock.clearTimeout(timer);
    timer = null;
    for (const [workspaceId, until] of elsewhere) if (until <= clock.monotonicMs()) elsewhere.delete(workspaceId);
    for (const { media, row } of registry.list()) {
      const isMeasured = isWanted(row.workspaceId);
      // A transcript can begin long after the media.
      transcripts.setHypotheses(row.callId, isMeasured);
      if (media === null) continue;
      if (isMeasured === measuredSessions.has(media)) continue;
      if (isMeasured) measuredSessions.add(media);
      else measuredSessions.delete(media);
      // A closing session cannot be measured.
      media.setMeasured(isMeasured).catch((error) => {
        logger.debug({ callId: row.callId, err: error }, 'a call could not be measured');
      });
    }
    if (watched.size + elsewhere.size > 0) timer = clock.setTimeout(adjust, ADJUST_EVERY_MS);
  }

  function receiveInterest({ boot, workspaceIds }: Interest): void {
    if (boot === nodes.boot || closing.signal.aborted) return;
    for (const workspaceId of workspaceIds) elsewhere.set(workspaceId, clock.monotonicMs() + INTEREST_MS);
    if (timer === null) adjust();
  }

  function announce(workspaceIds: string[]): void {
    const interest: Interest = { boot: nodes.boot, workspaceIds };
    if (workspaceIds.length > 0) cluster.broadcast(INTEREST_TOPIC, interest);
  }

  function listen(): void {
    if (isListening) return;
    isListening = true;
    cluster
      .subscribe(INTEREST_TOPIC, (message) => receiveInterest(message as Interest), closing.signal)
      .catch((error) => {
        isListening = false;
        logger.warn({ err: error }, 'listening for the interest of other nodes failed');
      });
  }

  function subscribe(workspaceId: string, entry: Watched): void {
    if (entry.isSubscribed || nodes.peers().length === 0) return;
    entry.isSubscribed = true;
    const receive = (news: unknown) => notify(workspaceId, news as LiveNews);
    cluster.subscribe(newsTopicOf(workspaceId), receive, entry.abort.signal).catch((error) => {
      entry.isSubscribed = false;
      logger.warn({ err: error }, 'listening for live calls of other nodes failed');
    });
  }

  nodes.onRenewed((peers) => {
    if (peers.length === 0 || closing.signal.aborted) return;
    listen();
    announce([...watched.keys()]);
    for (const [workspaceId, entry] of watched) {
      subscribe(workspaceId, entry);
      // News between nodes can be lost, so the listener has to read the calls once.
      notify(workspaceId, { type: 'changed' });
    }
  });

  function unwatch(workspaceId: string, listener: (news: LiveNews) => void): void {
    const entry = watched.get(workspaceId);
    if (!entry?.listeners.delete(listener) || entry.listeners.size > 0) return;
    watched.delete(workspaceId);
    entry.abort.abort();
  }

  return {
    watch(workspaceId, listener, signal) {
      if (signal.aborted || closing.signal.aborted) return;
      const entry = watched.get(workspaceId) ?? {
        listeners: new Set(),
        abort: new AbortController(),
        isSubscribed: false,
      };
      watched.set(workspaceId, entry);
      entry.listeners.add(listener);
      signal.addEventListener('abort', () => unwatch(workspaceId, listener), { once: true });
      subscribe(workspaceId, entry);
      announce([workspaceId]);
      if (timer === null) adjust();
    },
    changed(callId) {
      const workspaceId = registry.get(callId)?.row.workspaceId;
      // A call that was taken over from another boot runs nowhere.
      const workspaceIds = workspaceId === undefined ? [...watched.keys(), ...elsewhere.keys()] : [workspaceId];
      for (const each of new Set(workspaceIds)) publish(each, { type: 'changed' });
    },
    measured({ row: { callId, workspaceId } }, measurement) {
      const news: LiveNews =
        measurement.type === 'levels.measured'
          ? { type: 'levels', callId, levels: measurement.levels }
          : { type: 'quality', callId, quality: measurement.quality };
      publish(workspaceId, news);
    },
    publishHypothesis({ row, guests }, { leg, text, startMs, endMs }) {
      if (text === '') return;
      const { callId, workspaceId, direction, createdByUserId } = row;
      const access = { direction, createdByUserId };
      const role = isLegName(leg) ? leg : (guests.get(leg)?.role ?? 'party');
      publish(workspaceId, { type: 'hypothesis', hypothesis: { callId, access, leg, role, text, startMs, endMs } });
    },
    [Symbol.dispose]() {
      closing.abort();
      clock.clearTimeout(timer);
      for (const { abort } of watched.values()) abort.abort();
      watched.clear();
    },
  };
}
