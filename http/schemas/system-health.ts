import { Type } from 'typebox';
import type { SystemReport } from '../../actors/observability/system-health.ts';
import { nullable, TimeSchema } from './envelope.ts';

const StatusSchema = Type.Enum(['ok', 'warning', 'failed'], {
  description: '`warning`: it works, but not well, or not for long. `failed`: the server cannot do a part of its work.',
});
const Share = (description: string) => Type.Number({ description: `${description}, 0 to 1.` });
const Count = (description: string) => Type.Integer({ description });

const CheckSchema = Type.Object({
  id: Type.String({ description: 'Id of the check, unique in the response.' }),
  name: Type.String({ description: 'Name of the check, as `tandem doctor` shows it.' }),
  status: StatusSchema,
  message: Type.String({ description: 'Result of the check.' }),
  action: nullable(Type.String({ description: 'How to fix it. Null if the check is ok.' })),
});

const NodeSchema = Type.Object({
  name: Type.String({ description: 'Name of the node.' }),
  boot: Type.String({ description: 'Id of the start of the node.' }),
  is_this: Type.Boolean({ description: 'True for the node that answers.' }),
  version: nullable(Type.String({ description: 'Version that the node runs. Null if it is not known.' })),
  state: Type.Enum(['running', 'draining', 'lost', 'ended'], {
    description:
      '`draining`: finishes its calls and takes no new ones. `lost`: its lease expired, and another node takes over its calls. `ended`: its calls are settled; shown for a day.',
  }),
  calls: Count('Live calls.'),
  media_load: Share('Load of its least loaded media worker'),
  can_place_calls: Type.Boolean({ description: 'Whether it can place calls now.' }),
  lease_seconds_left: Type.Number({ description: 'Seconds until its lease expires. Negative: since it expired.' }),
  last_seen_seconds_ago: nullable(
    Type.Number({ description: 'Seconds since it last renewed its lease. Null if it has not done so yet.' }),
  ),
  taken_over_by: nullable(Type.String({ description: 'Node that takes over its calls.' })),
  started_at: TimeSchema,
});

const EngineSchema = Type.Object({
  engine: Type.String({ description: 'Name of the engine.' }),
  kind: Type.Enum(['stt', 'tts'], { description: 'Speech-to-text or text-to-speech.' }),
  is_running: Type.Boolean({ description: 'Whether the thread of the engines runs.' }),
  models: Type.Array(Type.String(), { description: 'Installed models. Empty for text-to-speech.' }),
  voices: nullable(Type.Integer({ description: 'Available voices. Null for speech-to-text.' })),
  loaded: nullable(Type.Integer({ description: 'Recognizers that are loaded. Null for text-to-speech.' })),
  busy: nullable(Type.Integer({ description: 'Recognizers that work now. Null for text-to-speech.' })),
  real_time_factor: nullable(
    Type.Number({ description: 'Measured seconds of work per second of audio. Null before the first use.' }),
  ),
  problem: nullable(Type.String({ description: 'Why the engine cannot be used. Null if it can.' })),
});

const DownloadSchema = Type.Object({
  model: nullable(Type.String({ description: 'Model. Null if it is fetched by its address.' })),
  kind: nullable(Type.String({ description: 'Kind of the model.', examples: ['stt'] })),
  bytes: Count('Bytes so far.'),
  total_bytes: nullable(Type.Integer({ description: 'Approximate size. Null if it is not known.' })),
  progress: nullable(Share('Share of the bytes that are there. Null if the size is not known')),
  updated_at: { ...TimeSchema, description: 'When the last bytes arrived. An interrupted download can be continued.' },
});

const QueueSchema = Type.Object({
  name: Type.String({ description: 'Name of the queue.', examples: ['deliveries'] }),
  waiting: Count('Jobs that are due.'),
  active: Count('Jobs that are worked on, on all nodes.'),
  delayed: Count('Jobs that are due later.'),
});

export const SystemHealthSchema = Type.Object(
  {
    status: { ...StatusSchema, description: 'The worst status of the checks.' },
    checks: Type.Array(CheckSchema),
    checked_at: {
      ...TimeSchema,
      description: 'When the checks began. They are repeated after 15 seconds at the earliest.',
    },
    nodes: Type.Array(NodeSchema, { description: 'Nodes that share the database.' }),
    media: Type.Object(
      {
        sessions: Count('Media sessions of calls.'),
        max_sessions: Count('Maximum number of sessions, by the range of RTP ports.'),
        load: Share('Load of the least loaded worker. At 1, no call is accepted'),
        workers: Type.Array(
          Type.Object({
            utilization: Share('Share of the last second in which the worker was busy'),
            lateness_ms: Type.Number({
              description: 'Longest delay of its timers in the last second, in milliseconds.',
            }),
          }),
        ),
      },
      { description: 'Media workers of the node that answers.' },
    ),
    engines: Type.Array(EngineSchema, { description: 'Speech engines of the node that answers.' }),
    language_models: Type.Array(
      Type.Object({
        id: Type.String({ description: 'Id of the model.' }),
        context_tokens: nullable(Type.Integer({ description: 'Size of its context. Null if it is not known.' })),
      }),
      { description: 'Language models that are configured and respond.' },
    ),
    downloads: Type.Array(DownloadSchema, { description: 'Unfinished downloads of models to the node that answers.' }),
    queues: Type.Array(QueueSchema, { description: 'Queues of background jobs, on all nodes.' }),
    versions: Type.Object({
      tandem: Type.String({ description: 'Version of the node that answers.' }),
      node: Type.String({ description: 'Version of Node.js.' }),
      postgres: nullable(Type.String({ description: 'Version of PostgreSQL. Null if it does not respond.' })),
    }),
  },
  {
    examples: [
      {
        status: 'warning',
        checks: [
          {
            ...{ id: 'disk', name: 'disk', status: 'warning', message: '0.8 GB free: 6 hours of recordings' },
            action: 'Make room, or set TANDEM_DATA_DIR to a folder on a larger disk.',
          },
        ],
        checked_at: '2026-01-31T09:30:00.000Z',
        nodes: [
          {
            ...{ name: 'node-1', boot: '4c1c8a52-7f43-4b53-9f8e-3a4f5c0f7f02', is_this: true, version: '0.1.0' },
            ...{ state: 'running', calls: 3, media_load: 0.1, can_place_calls: true, lease_seconds_left: 7.6 },
            ...{ last_seen_seconds_ago: 0.4, taken_over_by: null, started_at: '2026-01-31T08:00:00.000Z' },
          },
        ],
        media: { sessions: 3, max_sessions: 2500, load: 0.1, workers: [{ utilization: 0.1, lateness_ms: 0.6 }] },
        engines: [
          {
            ...{ engine: 'pocketsphinx', kind: 'stt', is_running: true, models: ['pocketsphinx/en-us'], voices: null },
            ...{ loaded: 1, busy: 0, real_time_factor: 0.3, problem: null },
          },
        ],
        language_models: [{ id: 'qwen3-8b-q4', context_tokens: 32768 }],
        downloads: [],
        queues: [{ name: 'deliveries', waiting: 0, active: 1, delayed: 2 }],
        versions: { tandem: '0.1.0', node: '24.21.0', postgres: '17.5' },
      },
    ],
  },
);

export function presentSystemHealth(report: SystemReport) {
  const { checks, media } = report;
  const worst = (['failed', 'warning'] as const).find((status) => checks.some((check) => check.status === status));
  return {
    status: worst ?? 'ok',
    checks,
    checked_at: report.checkedAt.toISOString(),
    nodes: report.nodes.map(presentNode),
    media: {
      ...{ sessions: media.sessions, max_sessions: media.maxSessions, load: media.load },
      workers: media.workers.map(({ utilization, latenessMs }) => ({ utilization, lateness_ms: latenessMs })),
    },
    engines: presentEngines(report),
    language_models: report.languageModels.map(({ id, contextTokens }) => ({ id, context_tokens: contextTokens })),
    downloads: report.downloads.map(({ model, kind, bytes, totalBytes, updatedAt }) => ({
      ...{ model, kind, bytes, total_bytes: totalBytes },
      progress: totalBytes === null ? null : Math.min(1, bytes / totalBytes),
      updated_at: updatedAt.toISOString(),
    })),
    queues: report.queues,
    versions: report.versions,
  };
}

function presentNode(node: SystemReport['nodes'][number]) {
  return {
    ...{ name: node.node, boot: node.boot, is_this: node.isThis, version: node.version, state: stateOf(node) },
    ...{ calls: node.liveCalls, media_load: node.mediaLoad, can_place_calls: node.canPlaceCalls },
    lease_seconds_left: tenths(node.leaseLeftMs),
    last_seen_seconds_ago: node.silentForMs === null ? null : tenths(node.silentForMs),
    ...{ taken_over_by: node.takenOverBy, started_at: node.startedAt.toISOString() },
  };
}

function stateOf({ isSettled, takenOverBy, leaseLeftMs, isDraining }: SystemReport['nodes'][number]) {
  if (isSettled) return 'ended';
  if (takenOverBy !== null || leaseLeftMs <= 0) return 'lost';
  return isDraining ? 'draining' : 'running';
}

function presentEngines({ recognition, synthesis }: SystemReport) {
  return [
    ...recognition.engines.map(({ engine, models, loaded, busy, realTimeFactor, problem }) => ({
      ...{ engine, kind: 'stt', is_running: recognition.isRunning, models, voices: null, loaded, busy },
      ...{ real_time_factor: realTimeFactor, problem },
    })),
    ...synthesis.engines.map(({ engine, voices, problem }) => ({
      ...{ engine, kind: 'tts', is_running: synthesis.isRunning, models: [], voices, loaded: null, busy: null },
      ...{ real_time_factor: null, problem },
    })),
  ];
}

function tenths(ms: number): number {
  return Math.round(ms / 100) / 10;
}
