import type { LanguageModels } from '../../language/llm.ts';
import type { MediaPlane } from '../../media/media-plane.ts';
import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import { listDownloads } from '../../speech/models/downloads.ts';
import type { SpeechEngines } from '../../speech/open-speech-engines.ts';
import type { Sql } from '../../storage/database.ts';
import type { Jobs } from '../../storage/jobs.ts';
import { type NodeIdentity, nodeStates } from '../../storage/queries/nodes.ts';
import type { Logger } from '../logger.ts';
import type { Readiness, ReadinessCheck } from './readiness.ts';
import type { SystemCheck, SystemHealth, SystemReport } from './system-health.ts';

export interface SystemHealthOptions {
  sql: Sql;
  self: NodeIdentity;
  /** Checks the machine and the settings. Never rejects. */
  diagnose(): Promise<readonly Diagnosed[]>;
  readiness: Readiness;
  mediaPlane: Pick<MediaPlane, 'capacity'>;
  engines: {
    recognition: Pick<SpeechEngines['recognition'], 'engines' | 'isRunning'>;
    synthesis: Pick<SpeechEngines['synthesis'], 'engines' | 'isRunning'>;
  };
  models: Pick<LanguageModels, 'list'>;
  modelsDir: string;
  jobs: Pick<Jobs, 'counts'>;
  version: string;
  clock: Clock;
  logger: Logger;
  /** Timeout for each part. Default 5 000. */
  timeoutMs?: number;
}

export interface Diagnosed {
  check: string;
  status: 'ok' | 'warn' | 'fail';
  message: string;
  advice: string | null;
}

/** Time for which a report is shared, because some checks write to a bucket or ask other servers. */
const SHARED_FOR_MS = 15_000;
const STATUS = { ok: 'ok', warn: 'warning', fail: 'failed' } as const;

export function createSystemHealth(options: SystemHealthOptions): SystemHealth {
  const { sql, self, readiness, mediaPlane, engines, models, modelsDir, jobs, version, clock, logger } = options;
  const { timeoutMs = 5_000 } = options;
  let latest: { checks: Promise<readonly SystemCheck[]>; at: Date; untilMs: number } | null = null;

  /** Returns the fallback for a part that fails or times out. The checks report the reason. */
  async function part<T>(name: string, read: () => Promise<T>, fallback: T): Promise<T> {
    try {
      const value = await within(read(), { ms: timeoutMs });
      return value === LATE ? fallback : value;
    } catch (error) {
      logger.warn({ part: name, err: error }, 'part of the system health could not be read');
      return fallback;
    }
  }

  async function examine(): Promise<readonly SystemCheck[]> {
    const [live, found] = await Promise.all([readiness.check(), options.diagnose()]);
    return withIds([...live.map(ofReadiness), ...found.map(ofDiagnosis)]);
  }

  function checksNow() {
    if (latest === null || clock.monotonicMs() >= latest.untilMs) {
      latest = { checks: examine(), at: new Date(clock.now()), untilMs: clock.monotonicMs() + SHARED_FOR_MS };
    }
    return latest;
  }

  return {
    async report(): Promise<SystemReport> {
      const { checks, at } = checksNow();
      const { sessions, maxSessions, load, utilization, latenessMs } = mediaPlane.capacity();
      const [checked, nodes, recognition, synthesis, language, downloads, counts, postgres] = await Promise.all([
        checks,
        part('nodes', () => nodeStates(sql), []),
        part('recognition', () => engines.recognition.engines(), []),
        part('synthesis', () => engines.synthesis.engines(), []),
        // The checks report why there are none.
        part('models', () => models.list().catch(() => ({ models: [] })), { models: [] }),
        part('downloads', () => listDownloads(modelsDir), []),
        part('queues', () => jobs.counts(), {}),
        part('postgres', () => postgresVersion(sql), null),
      ]);
      return {
        ...{ checks: checked, checkedAt: at, downloads },
        nodes: nodes.map((state) => ({ ...state, isThis: state.node === self.node && state.boot === self.boot })),
        media: {
          ...{ sessions, maxSessions, load },
          workers: utilization.map((share, index) => ({ utilization: share, latenessMs: latenessMs[index] ?? 0 })),
        },
        recognition: { isRunning: engines.recognition.isRunning, engines: recognition },
        synthesis: { isRunning: engines.synthesis.isRunning, engines: synthesis },
        languageModels: language.models.map(({ id, contextTokens }) => ({ id, contextTokens })),
        queues: Object.entries(counts).map(([name, count]) => ({ name, ...count })),
        versions: { tandem: version, node: process.versions.node, postgres },
      };
    },
  };
}

async function postgresVersion(sql: Sql): Promise<string> {
  const [row] = await sql<{ version: string }[]>`select current_setting('server_version') as version`;
  return row!.version;
}

function ofReadiness({ name, ok, reason }: ReadinessCheck): Omit<SystemCheck, 'id'> {
  const action = 'Look at the log of the server. It takes no requests from a load balancer meanwhile.';
  if (ok) return { name, status: 'ok', message: 'It works.', action: null };
  return { name, status: 'failed', message: reason ?? 'It does not work.', action };
}

function ofDiagnosis({ check, status, message, advice }: Diagnosed): Omit<SystemCheck, 'id'> {
  return { name: check, status: STATUS[status], message, action: advice };
}

/** Derives ids from check names. These may contain trunk names, so ids keep only letters and digits of any script. */
function withIds(checks: readonly Omit<SystemCheck, 'id'>[]): SystemCheck[] {
  const used = new Set<string>();
  return checks.map((check) => {
    const slug = check.name
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, '-')
      .replace(/^-+|-+$/g, '');
    let id = slug;
    for (let count = 2; used.has(id); count++) id = `${slug}-${count}`;
    used.add(id);
    return { id, ...check };
  });
}
