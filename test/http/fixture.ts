import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { createChatDesk } from '../../actors/chat/chat-desk.actor.ts';
import { createDocumentDesk } from '../../actors/documents/document-desk.actor.ts';
import { createJudgeBatches, type JudgeBatches } from '../../actors/judge/batch.actor.ts';
import { createJudgeDesk } from '../../actors/judge/judge-desk.actor.ts';
import { createJudging } from '../../actors/judge/judging.ts';
import { type OpenMemory, openMemory } from '../../actors/memory/open-memory.ts';
import { createNumberVerifier } from '../../actors/number-verifier.actor.ts';
import { createPhoneDesk } from '../../actors/phones/phone-desk.actor.ts';
import { startEraser } from '../../actors/privacy/eraser.actor.ts';
import { createRecordingExporter } from '../../actors/recordings/recording-exporter.ts';
import { createRecordingLibrary } from '../../actors/recordings/recording-library.actor.ts';
import { createTrunkTargets } from '../../actors/trunk-targets.actor.ts';
import { createWebhookDesk } from '../../actors/webhooks/webhook-desk.actor.ts';
import { createHttpServer } from '../../http/server.ts';
import type { HttpServerOptions } from '../../http/server-options.ts';
import { createTextCorrection } from '../../language/correction/correct-text.ts';
import { readDocument } from '../../language/documents/read-document.ts';
import { createLogger } from '../../logging.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { createSealingKeys } from '../../runtime/sealed-file/format.ts';
import type { Sql } from '../../storage/database.ts';
import { createLimitsInProcess } from '../../storage/limits/limits.ts';
import { type ObjectStore, openObjectStore } from '../../storage/objects.ts';
import { createApiKey } from '../../storage/queries/api-keys.ts';
import { NO_CALLING_LIMITS } from '../../storage/queries/calling-rules.ts';
import { addMember, createUser, createWorkspace, type Plan, type Role } from '../../storage/queries/workspaces.ts';
import { createSecretBox, type SecretBox } from '../../storage/secrets.ts';
import { everyGateway, FakeMediaPlane, FakeSip } from '../actors/fakes.ts';
import { MemoryQueue } from '../actors/memory-queue.ts';
import { FakeWebRtc } from '../actors/phones/fake-webrtc.ts';
import { FakeLanguageModels } from '../language/fake-language-models.ts';
import { firstAnswers, isJudgement } from '../language/judge/rubrics.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { FakeDialer } from './fake-dialer.ts';
import { FakeLiveCalls } from './fake-live-calls.ts';
import { FakeLiveStt } from './fake-live-stt.ts';
import { countedOnly, FakeReadiness, FakeSystemHealth } from './fake-operations.ts';
import { FakeTranscriber } from './fake-transcriber.ts';
import { FakeTtsDesk } from './fake-tts-desk.ts';
import { FakeVoiceDesk } from './fake-voice-desk.ts';

/** Encrypts recordings; plain ones that tests store stay playable. */
export const RECORDING_KEY = Buffer.alloc(32, 6);

export interface Member {
  key: string;
  keyId: number;
  userId: number;
  workspaceId: string;
}

/** The API on its own database, with a fake dialer, an owner with a key, and the captured log. */
export interface HttpFixture extends AsyncDisposable {
  app: FastifyInstance;
  sql: Sql;
  databaseUrl: string;
  dialer: FakeDialer;
  liveCalls: FakeLiveCalls;
  readiness: FakeReadiness;
  systemHealth: FakeSystemHealth;
  webRtc: FakeWebRtc;
  /** Answers verification calls to numbers. */
  sip: FakeSip;
  speech: FakeTtsDesk;
  voices: FakeVoiceDesk;
  transcriber: FakeTranscriber;
  liveStt: FakeLiveStt;
  /** Answers hello unless a test queues another answer. */
  models: FakeLanguageModels;
  /** Judges batches when the test calls `sweep`. */
  judgeBatches: Pick<JudgeBatches, 'sweep'>;
  memory: OpenMemory;
  memoryQueue: MemoryQueue;
  objects: ObjectStore;
  secrets: SecretBox;
  owner: Member;
  enqueued: string[];
  logLines: string[];
  now: { current: Date };
  addWorkspace(options?: { plan?: Plan }): Promise<Member>;
  addMemberWith(role: Role, workspaceId?: string): Promise<Member>;
  putObject(key: string, bytes: Buffer): Promise<void>;
  call(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS',
    url: string,
    more?: CallOptions,
  ): Promise<Answer>;
}

export interface CallOptions {
  /** Default: the owner. Null sends no key. */
  as?: Member | null;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: LightMyRequestResponse['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of any shape
  body: any;
  raw: Buffer;
}

export async function createHttpFixture(
  options: Partial<HttpServerOptions> = {},
  { memoryQueue = new MemoryQueue() }: { memoryQueue?: MemoryQueue } = {},
): Promise<HttpFixture> {
  const database = await createTestDatabase();
  const { sql } = database;
  const folder = await mkdtemp(join(tmpdir(), 'tandem-http-'));
  const objects = await openObjectStore({ folder: join(folder, 'objects') });
  const dialer = new FakeDialer();
  const liveCalls = new FakeLiveCalls();
  const readiness = new FakeReadiness();
  const systemHealth = new FakeSystemHealth();
  const webRtc = new FakeWebRtc();
  const speech = new FakeTtsDesk();
  const voices = new FakeVoiceDesk();
  const transcriber = new FakeTranscriber();
  const liveStt = new FakeLiveStt();
  const secrets = createSecretBox(Buffer.alloc(32, 9));
  const logLines: string[] = [];
  const now = { current: new Date('2026-01-02T03:04:05.678Z') };
  const enqueued: string[] = [];
  const webhooks = createWebhookDesk({
    sql,
    secrets,
    deliverer: { enqueue: async (deliveryId) => void enqueued.push(deliveryId) },
    allowCidrs: [],
    resolve: async () => ['93.184.215.14'],
    now: () => now.current,
  });
  const models = new FakeLanguageModels();
  models.otherwise = (request) => (isJudgement(request) ? firstAnswers(request) : 'Hello.');
  const countTokens = (text: string) => Math.ceil(text.length / 4);
  const logger = createLogger({ level: 'trace', destination: { write: (line) => void logLines.push(line) } });
  const chat = createChatDesk({
    ...{ sql, models, countTokens, logger, node: 'node-1', boot: 'boot-1' },
    correction: createTextCorrection({ models, countTokens }),
    clock: clockOf(now),
  });
  const judgeParts = { sql, models, node: 'node-1', boot: 'boot-1', logger, clock: clockOf(now) };
  const judging = createJudging(judgeParts);
  const jobs = { add: async () => {}, work: async () => ({ close: async () => {} }) };
  const judgeBatches = createJudgeBatches({ ...judgeParts, jobs, judging });
  const embeddings = { embeddingsBaseUrl: null, embeddingsApiKey: null, embeddingsModel: null };
  // A first search loads word vectors, which took 4 s on a busy machine.
  const searchTimeoutMs = 60_000;
  const memory = openMemory({
    ...{ sql, jobs: memoryQueue, models, embeddings, searchTimeoutMs },
    clock: clockOf(now),
    logger,
  });
  if (memoryQueue.state !== 'closed') await memory.ready({ withinMs: 10_000 });
  const documents = createDocumentDesk({
    sql,
    limits: createLimitsInProcess(),
    tempDir: folder,
    // Tests' documents need no separate process.
    reader: { read: (document) => readDocument(document), close: async () => {} },
  });
  const sealingKeys = createSealingKeys(RECORDING_KEY);
  const exporter = createRecordingExporter({ keys: sealingKeys, logger });
  const sip = new FakeSip();
  const trunkTargets = createTrunkTargets({
    ...{ sql, allowCidrs: [], resolve: async () => ['93.184.215.14'] },
    services: { naptr: async () => [], srv: async () => [] },
  });
  const numberVerifier = createNumberVerifier({
    ...{ sip, sql, secrets, trunkTargets, logger, clock: clockOf(now), callingLimits: NO_CALLING_LIMITS },
    mediaPlane: new FakeMediaPlane(),
    trunks: { isDown: () => false, dialing: (trunk) => everyGateway(trunk) },
  });
  const eraser = startEraser({
    ...{ sql, objects, node: 'node-1', recordingsDir: folder, clock: clockOf(now), logger },
  });
  const app = createHttpServer({
    eraser,
    recordings: createRecordingLibrary({
      ...{ sql, objects, keys: sealingKeys, exporter, clock: systemClock, logger },
      tempDir: folder,
    }),
    memory,
    documents,
    judge: createJudgeDesk({ ...judgeParts, judging, batches: judgeBatches }),
    sql,
    dialer,
    liveCalls,
    readiness,
    systemHealth,
    metrics: countedOnly(),
    phones: createPhoneDesk({ boot: 'boot-1', webRtc, clock: systemClock, logger }),
    speech,
    voices,
    transcriber,
    liveStt,
    webhooks,
    objects,
    secrets,
    urlSigningSecret: Buffer.alloc(32, 5),
    previousUrlSecrets: [Buffer.alloc(32, 4)],
    publicUrl: 'http://voice.test',
    logger,
    chat,
    models,
    now: () => now.current,
    trunkTargets,
    trunkProber: { probe: async () => [] },
    numberVerifier,
    registration: 'open',
    ...options,
  });
  await app.ready();

  async function addKey(workspaceId: string, userId: number, name: string): Promise<Member> {
    const key = `sk_${randomBytes(24).toString('base64url')}`;
    const row = await createApiKey(sql, {
      workspaceId,
      createdByUserId: userId,
      name,
      prefix: key.slice(0, 7),
      last4: key.slice(-4),
      keyHash: createHash('sha256').update(key).digest(),
      now: now.current,
    });
    return { key, keyId: row.id, userId, workspaceId };
  }

  async function addWorkspace({ plan = 'enterprise' }: { plan?: Plan } = {}): Promise<Member> {
    const email = `${randomBytes(8).toString('hex')}@example.com`;
    const owner = { email, passwordHash: null };
    const { workspace, user } = await createWorkspace(sql, { name: 'Acme', plan, owner, now: now.current });
    return await addKey(workspace.id, user.id, 'owner key');
  }

  // The first workspace belongs to the operator.
  const owner = await addWorkspace();
  return {
    app,
    sql,
    databaseUrl: database.url,
    dialer,
    liveCalls,
    readiness,
    systemHealth,
    webRtc,
    sip,
    speech,
    voices,
    transcriber,
    liveStt,
    models,
    judgeBatches,
    memory,
    memoryQueue,
    objects,
    secrets,
    owner,
    enqueued,
    logLines,
    now,
    addWorkspace,

    async addMemberWith(role, workspaceId = owner.workspaceId) {
      const email = `${randomBytes(8).toString('hex')}@example.com`;
      const user = await createUser(sql, { email, passwordHash: null, now: now.current });
      await addMember(sql, { workspaceId, userId: user.id, role, now: now.current });
      return await addKey(workspaceId, user.id, `${role} key`);
    },

    async putObject(key, bytes) {
      const sourcePath = join(folder, randomBytes(8).toString('hex'));
      await writeFile(sourcePath, bytes);
      await objects.putFile({ key, sourcePath });
    },

    async call(method, url, { as = owner, body, headers = {} } = {}) {
      const request = {
        method,
        url,
        headers: { ...(as === null ? {} : { authorization: `Bearer ${as.key}` }), ...headers },
        ...(body === undefined ? {} : { payload: body as string | Buffer | object }),
      };
      const isEndless = /^\/dialer\/stream(\?|$)/.test(url) && method === 'GET';
      if (isEndless) return await beginningOf(await app.inject({ ...request, payloadAsStream: true }));
      const response = await app.inject(request);
      const isJson = String(response.headers['content-type']).startsWith('application/json');
      return {
        status: response.statusCode,
        headers: response.headers,
        body: isJson && response.body !== '' ? response.json() : null,
        raw: response.rawPayload,
      };
    },

    async [Symbol.asyncDispose]() {
      await app.close();
      eraser[Symbol.dispose]();
      await numberVerifier[Symbol.asyncDispose]();
      await exporter.close();
      await chat.close();
      await memory.close();
      transcriber[Symbol.dispose]();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The response up to the first event of an endless stream. */
async function beginningOf(response: LightMyRequestResponse): Promise<Answer> {
  const { statusCode: status, headers } = response;
  const isStream = status === 200;
  let text = '';
  for await (const chunk of response.stream()) {
    text += String(chunk);
    if (isStream && /^data: .*\n\n/m.test(text)) break;
  }
  return { status, headers, body: isStream ? null : JSON.parse(text), raw: Buffer.from(text) };
}

/** Real timers with the test's current time. */
function clockOf(now: { current: Date }): Clock {
  const ms = () => now.current.getTime();
  return { ...systemClock, now: ms, monotonicMs: ms };
}
