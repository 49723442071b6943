import { statfs } from 'node:fs/promises';
import type { MediaPlane } from '../../media/media-plane.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { SipGateway } from '../../sip/sip-gateway.ts';
import type { SpeechEngines } from '../../speech/open-speech-engines.ts';
import type { Sql } from '../../storage/database.ts';
import type { Jobs } from '../../storage/jobs.ts';
import type { NodeDialer } from '../dialer.actor.ts';
import type { Readiness, ReadinessCheck } from './readiness.ts';

export interface ReadinessOptions {
  sql: Sql;
  jobs: Pick<Jobs, 'pingRedis'>;
  sip: Pick<SipGateway, 'state'>;
  mediaPlane: Pick<MediaPlane, 'capacity'>;
  engines: { recognition: Running; synthesis: Running };
  dialer: Pick<NodeDialer, 'isDraining'>;
  /** Folder of recordings and uploads. */
  dataDir: string;
  /** Default: free bytes of that folder's disk. */
  freeBytesOf?: (folder: string) => Promise<number>;
  /** Timeout for each dependency. Default 2 000. */
  timeoutMs?: number;
}

type Running = Pick<SpeechEngines['recognition'], 'isRunning'>;

/** Below this, new recordings fail. `tandem doctor` warns earlier. */
const LEAST_FREE_BYTES = 200e6;
const DEFAULT_TIMEOUT_MS = 2_000;
/** Time for which results that cost a round trip are shared, because anyone may request them. */
const SHARED_FOR_MS = 500;

export function createReadiness(options: ReadinessOptions): Readiness {
  const { sql, jobs, sip, mediaPlane, engines, dialer, dataDir } = options;
  const { freeBytesOf = freeBytes, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const { pingRedis } = jobs;
  const isFree = async () => (await freeBytesOf(dataDir)) >= LEAST_FREE_BYTES;
  const remote = shared(() =>
    Promise.all([
      responds('database', async () => void (await sql`select 1`), timeoutMs),
      ...(pingRedis === null ? [] : [responds('redis', pingRedis, timeoutMs)]),
      within(isFree(), { ms: timeoutMs })
        .then((free) =>
          free === LATE
            ? outcome('disk', false, `It did not respond within ${timeoutMs / 1_000} s.`)
            : outcome('disk', free, 'Less than 200 MB are free on the disk of the data folder.'),
        )
        .catch(() => outcome('disk', false, 'The free space of the data folder is unknown.')),
    ]),
  );
  return {
    async check() {
      const checked = await remote();
      const { workers } = mediaPlane.capacity();
      return [
        ...checked,
        outcome('sip_server', sip.state === 'connected', 'The SIP server is not connected.'),
        outcome('media_workers', workers > 0, 'No media worker is running.'),
        outcome('recognition', engines.recognition.isRunning, 'The recognition thread is not running.'),
        outcome('synthesis', engines.synthesis.isRunning, 'The synthesis thread is not running.'),
        outcome('accepting_work', !dialer.isDraining, 'The server is shutting down.'),
      ];
    },
  };
}

function outcome(name: string, ok: boolean, reason: string): ReadinessCheck {
  return { name, ok, reason: ok ? null : reason };
}

/** Omits the error from the reason, because it may contain an address or a user name. */
async function responds(name: string, ask: () => Promise<void>, timeoutMs: number): Promise<ReadinessCheck> {
  try {
    const answer = await within(ask(), { ms: timeoutMs });
    return outcome(name, answer !== LATE, `It did not respond within ${timeoutMs / 1_000} s.`);
  } catch {
    return outcome(name, false, 'It cannot be reached.');
  }
}

/** Shares one result among concurrent and closely following calls. */
function shared<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let latest: Promise<Result> | null = null;
  let usableUntilMs = Number.POSITIVE_INFINITY;
  return () => {
    if (latest !== null && performance.now() < usableUntilMs) return latest;
    usableUntilMs = Number.POSITIVE_INFINITY;
    latest = work().finally(() => {
      usableUntilMs = performance.now() + SHARED_FOR_MS;
    });
    return latest;
  };
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
