import { Gauge, type Registry } from 'prom-client';
import type { MediaPlane } from '../../media/media-plane.ts';
import { nanoToUsd } from '../../runtime/money.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { SpeechRecognition } from '../../speech/speech-recognition.ts';
import { POOL_SIZE, type Sql } from '../../storage/database.ts';
import type { Jobs } from '../../storage/jobs.ts';
import { countConnections, sumOpenHolds } from '../../storage/queries/platform-figures.ts';
import type { CallRegistry, LiveCall } from '../call-registry.ts';
import type { Logger } from '../logger.ts';
import type { Readiness } from './readiness.ts';

export interface MeasuredGaugesOptions {
  registry: Registry;
  calls: Pick<CallRegistry, 'list'>;
  mediaPlane: Pick<MediaPlane, 'capacity'>;
  recognition: Pick<SpeechRecognition, 'liveLoad'>;
  jobs: Pick<Jobs, 'counts'>;
  sql: Sql;
  readiness: Readiness;
  logger: Pick<Logger, 'warn'>;
}

/** Prometheus times out after ten seconds by default. */
const TIMEOUT_MS = 2_000;
const CALL_STATES = ['pending', 'initiated', 'bridged', 'ending'] as const;

/** Returns a function that updates the gauges measured on demand. It never rejects. */
export function createMeasuredGauges(options: MeasuredGaugesOptions): () => Promise<void> {
  const { calls, mediaPlane, recognition, jobs, sql, readiness, logger } = options;
  const registers = [options.registry];
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers });
  const live = gauge('tandem_calls', 'Live calls of this process, by state.', 'state');
  const dependencies = gauge(
    'tandem_dependency_up',
    'Result of each readiness check: 1 is ok. GET /readyz returns the reason.',
    'dependency',
  );
  const queued = gauge('tandem_jobs', 'Jobs of a queue, of all processes on one database or Redis.', 'queue', 'state');
  const poolSize = gauge('tandem_database_pool_size', 'Most connections of this process to the database.');
  const connections = gauge('tandem_database_connections', 'Connections of this process to the database.', 'state');
  const holds = gauge('tandem_wallet_holds', 'Open wallet holds, of all processes on one database.');
  const held = gauge('tandem_wallet_held_usd', 'Sum of the open wallet holds, of all processes on one database.');
  const busy = gauge(
    'tandem_media_worker_busy_ratio',
    'Share of the last second in which a media worker had something to do, 0 to 1.',
    'worker',
  );
  const late = gauge(
    'tandem_media_worker_late_seconds',
    'The longest that a media worker was late in the last second. Packets waited as long.',
    'worker',
  );
  const load = gauge(
    'tandem_media_load_ratio',
    'Load of the least busy media worker, 0 to 1. At 1, new calls fail with no_free_channel.',
  );
  const liveLoad = gauge(
    'tandem_stt_live_load_ratio',
    'Load of the recognizers by live transcription. A session that would raise it above 1 is refused.',
  );
  const sessions = gauge('tandem_media_sessions', 'Open media sessions.');
  const mostSessions = gauge(
    'tandem_media_sessions_max',
    'Media sessions of two parties that fit into the port range.',
  );
  poolSize.set(POOL_SIZE);

  function measureCalls(): void {
    const counts = Object.fromEntries(CALL_STATES.map((state) => [state, 0])) as Record<CallState, number>;
    for (const call of calls.list()) counts[stateOf(call)] += 1;
    for (const state of CALL_STATES) live.set({ state }, counts[state]);
  }

  function measureMedia(): void {
    const capacity = mediaPlane.capacity();
    load.set(capacity.load);
    liveLoad.set(recognition.liveLoad(0));
    sessions.set(capacity.sessions);
    mostSessions.set(capacity.maxSessions);
    busy.reset();
    late.reset();
    for (const [worker, share] of capacity.utilization.entries()) busy.set({ worker: String(worker) }, share);
    for (const [worker, lateMs] of capacity.latenessMs.entries()) late.set({ worker: String(worker) }, lateMs / 1000);
  }

  async function measureJobs(): Promise<void> {
    const counts = await jobs.counts();
    for (const [queue, states] of Object.entries(counts)) {
      for (const [state, count] of Object.entries(states)) queued.set({ queue, state }, count);
    }
  }

  async function measureDatabase(): Promise<void> {
    const [{ active, idle, idleInTransaction }, open] = await Promise.all([countConnections(sql), sumOpenHolds(sql)]);
    connections.set({ state: 'active' }, active);
    connections.set({ state: 'idle' }, idle);
    connections.set({ state: 'idle_in_transaction' }, idleInTransaction);
    holds.set(open.count);
    held.set(nanoToUsd(open.sumNano));
  }

  async function measureDependencies(): Promise<void> {
    for (const { name, ok } of await readiness.check()) dependencies.set({ dependency: name }, ok ? 1 : 0);
  }

  /** Removes a value that cannot be measured, so that no old one is reported. */
  async function measured(source: string, work: () => Promise<void>, forget: () => void): Promise<void> {
    forget();
    const failure = await within(work(), { ms: TIMEOUT_MS }).then(
      (result) => (result === LATE ? new Error('It did not respond in time.') : null),
      (error: unknown) => error,
    );
    if (failure !== null) logger.warn({ source, err: failure }, 'metrics could not be measured');
  }

  return async () => {
    measureCalls();
    measureMedia();
    await Promise.all([
      measured('jobs', measureJobs, () => queued.reset()),
      measured('database', measureDatabase, () => {
        connections.reset();
        holds.remove();
        held.remove();
      }),
      measureDependencies(),
    ]);
  };
}

type CallState = (typeof CALL_STATES)[number];

/** State of the call as in the API, until it begins to end. */
function stateOf({ actor }: LiveCall): CallState {
  const snapshot = actor.getSnapshot();
  if (snapshot.matches({ active: { live: 'bridged' } })) return 'bridged';
  if (snapshot.matches({ active: 'live' })) return 'initiated';
  return snapshot.matches({ active: 'preparing' }) ? 'pending' : 'ending';
}
