import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTtsDesk, type TtsDeskOptions } from '../../actors/tts/tts-desk.actor.ts';
import type { SpeakTextRequest } from '../../actors/tts/tts-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import type { SpeakRequest, SpokenPart } from '../../speech/speech-synthesis.ts';
import { NEUTRAL_PROSODY, type Script, ScriptError } from '../../speech/text/script.ts';
import { PLAIN_CHARACTER, USUAL_STYLE, type VoiceRecipe } from '../../speech/voices/voice-recipe.ts';
import { walletOf } from '../../storage/ledger.ts';
import { type ObjectStore, openObjectStore } from '../../storage/objects.ts';
import type { TtsStreamRow } from '../../storage/queries/tts-streams.ts';
import { createWebhook } from '../../storage/queries/webhooks.ts';
import { NOW, seedWorkspace, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createFakeDeliverer, createTestClock, createTestLogger } from './fakes.ts';

export const HINDI: VoiceRecipe = {
  engine: 'espeak-ng',
  model: 'espeak-ng',
  engineVoice: 'hi',
  language: 'hi',
  own: null,
  character: PLAIN_CHARACTER,
  reference: null,
};

export type Speak = (signal: AbortSignal, request: SpeakRequest) => AsyncGenerator<SpokenPart, void>;

/** A desk with a separate database, store and folder, and a fake engine. */
export interface TtsDeskFixture extends AsyncDisposable {
  database: TestDatabase;
  objects: ObjectStore;
  node: string;
  boot: string;
  request: SpeakTextRequest;
  deliverer: ReturnType<typeof createFakeDeliverer>;
  /** Creates a workspace and uses it in `request`. */
  fund(balanceNano: bigint): Promise<void>;
  /** Creates a webhook for both events. */
  subscribe(): Promise<void>;
  deskOf(speak: Speak, options?: Partial<TtsDeskOptions>): ReturnType<typeof openDesk>;
  balance(): Promise<bigint>;
  rows(): Promise<TtsStreamRow[]>;
  webhookEvents(): Promise<{ event: string; data: Record<string, unknown> }[]>;
  tempFiles(): Promise<string[]>;
}

function openDesk(fixture: TtsDeskFixture, tempDir: string, speak: Speak, options: Partial<TtsDeskOptions>) {
  const logger = createTestLogger();
  const clock = createTestClock();
  const { database, objects, deliverer, node, boot } = fixture;
  const desk = createTtsDesk({
    sql: database.sql,
    synthesis: { speak: (request, signal) => speak(signal, request) },
    voices: {
      async resolve({ voiceId }) {
        if (voiceId !== 'hi') throw new TandemError('VOICE_NOT_FOUND', 'There is no such voice.');
        return { id: 'voice-hi', recipe: HINDI };
      },
    },
    catalogue: { languages: () => [{ language: 'hi', name: 'Hindi' }] },
    readScript,
    deliverer,
    objects,
    tempDir,
    audioUrl: ({ key, expiresAt }) => `https://voice.test/${key}?until=${expiresAt.toISOString()}`,
    ...{ node, boot, clock, logger },
    ...options,
  });
  return { desk, logger, clock };
}

export async function createTtsDeskFixture(): Promise<TtsDeskFixture> {
  const database = await createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'tandem-tts-'));
  const tempDir = await mkdtemp(join(folder, 'temp-'));
  const objects = await openObjectStore({ folder: join(folder, 'objects') });
  const { sql } = database;
  async function fundedRequest(balanceNano: bigint): Promise<SpeakTextRequest> {
    const { workspace, user } = await seedWorkspace(sql, { balanceNano });
    const owner = { workspaceId: workspace.id, userId: user.id, apiKeyId: null };
    const format = { encoding: 'LINEAR16', sampleRateHz: 24_000 } as const;
    return { ...owner, text: 'नमस्ते 😀.', voiceId: 'hi', style: USUAL_STYLE, format };
  }
  const fixture: TtsDeskFixture = {
    database,
    objects,
    node: 'node-1',
    boot: 'boot-2',
    request: await fundedRequest(USD),
    deliverer: createFakeDeliverer(),
    async fund(balanceNano) {
      fixture.request = await fundedRequest(balanceNano);
    },
    async subscribe() {
      const { workspaceId } = fixture.request;
      const id = randomUUID();
      const url = 'https://example.com/hook';
      const secretEncrypted = Buffer.from('sealed');
      await createWebhook(sql, {
        ...{ id, workspaceId, url, secretEncrypted, now: NOW },
        events: ['tts.completed', 'tts.failed'],
      });
    },
    deskOf: (speak, options = {}) => openDesk(fixture, tempDir, speak, options),
    balance: async () => (await walletOf(sql, fixture.request.workspaceId)).balanceNano,
    rows: async () =>
      await sql<TtsStreamRow[]>`
      select * from tts_streams where workspace_id = ${fixture.request.workspaceId} order by created_at`,
    async webhookEvents() {
      const rows = await sql<{ body: string }[]>`
        select body from deliveries where workspace_id = ${fixture.request.workspaceId} order by created_at, id`;
      return rows.map(({ body }) => JSON.parse(body));
    },
    tempFiles: async () => await readdir(tempDir),
    async [Symbol.asyncDispose]() {
      await database.drop();
      await rm(folder, { recursive: true });
    },
  };
  return fixture;
}

/** Charges each character, rejects `<`, and finds nothing to pronounce in `-`. */
function readScript(text: string): Script {
  if (text.startsWith('<')) throw new ScriptError('<voice> in line 1 is none of the elements there are.');
  const written = text.split(' ').map((word) => ({ written: word, spoken: word === '-' ? '' : word, phonemes: null }));
  return {
    clauses: [{ words: written, prosody: NEUTRAL_PROSODY, pauseAfterMs: 0, voice: null, marks: [] }],
    characters: [...text].length,
  };
}

/** Lasts 0.1 s. */
export function part(text: string, index = 1): SpokenPart {
  return { audio: Buffer.from(text), durationMs: 100 * index, words: [] };
}

export async function drain(parts: AsyncIterable<SpokenPart>): Promise<string[]> {
  const texts: string[] = [];
  for await (const { audio } of parts) texts.push(Buffer.from(audio).toString());
  return texts;
}

export function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  if (signal.aborted) reject(signal.reason);
  return promise;
}
