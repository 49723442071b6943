import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createVoiceDesk } from '../../../actors/voices/voice-desk.actor.ts';
import type { CreateVoiceRequest, VoiceCaller, VoiceDesk, VoiceView } from '../../../actors/voices/voice-desk.ts';
import type { AvailableVoice, SpeakRequest, SpokenPart } from '../../../speech/speech-synthesis.ts';
import { createVoiceCatalogue } from '../../../speech/voices/built-in-voices.ts';
import { type ObjectStore, openObjectStore } from '../../../storage/objects.ts';
import { createWebhook } from '../../../storage/queries/webhooks.ts';
import { eventually } from '../../eventually.ts';
import { wavFile } from '../../media/audio-file/wav-files.ts';
import { spokenUtterances } from '../../speech/spoken.ts';
import { seedWorkspace } from '../../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { createFakeDeliverer, createTestClock, createTestLogger } from '../fakes.ts';
import { FakeRecognition } from '../stt-fakes.ts';

export const PLAIN: AvailableVoice = {
  engine: 'espeak-ng',
  model: 'espeak-ng',
  name: 'en-us',
  language: 'en-us',
  gender: 'male',
  clones: false,
};
export const CLONER: AvailableVoice = {
  engine: 'sherpa-onnx',
  model: 'zero-shot',
  name: 'zero-shot',
  language: 'en',
  gender: null,
  clones: true,
};

const SENTENCE = spokenUtterances()[0]!.samples;

/** A sentence of 7 s at 16 kHz, mono. Measuring a voice takes time in proportion. */
export const SPEECH: Buffer = wavFile(SENTENCE);

/** Repeated speech, distinct for each number. */
export function secondsOf(seconds: number, number: number): Buffer {
  const samples = new Int16Array(seconds * 16_000);
  for (let at = 0; at < samples.length; at++) samples[at] = SENTENCE[(at + number * 997) % SENTENCE.length]!;
  return wavFile(samples);
}

export const SILENCE: Buffer = wavFile(new Int16Array(16_000 * 8));

/** Returns a fixed number of bytes for any text, or fails. */
export class FakeSynthesis {
  available: AvailableVoice[] = [PLAIN];
  asked: SpeakRequest[] = [];
  failure: Error | null = null;
  /** Makes synthesis hang until cancelled. */
  isStuck = false;

  voices() {
    return this.available;
  }

  async *speak(request: SpeakRequest, signal: AbortSignal): AsyncGenerator<SpokenPart, void> {
    this.asked.push(request);
    signal.throwIfAborted();
    if (this.failure !== null) throw this.failure;
    if (this.isStuck) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    yield { audio: Buffer.from('ID3'), words: [], durationMs: 500 };
    yield { audio: Buffer.from('...'), words: [], durationMs: 900 };
  }
}

/** Desks on one database and one store, like successive starts of one node. */
export interface VoiceFixture extends AsyncDisposable {
  database: TestDatabase;
  objects: ObjectStore;
  synthesis: FakeSynthesis;
  recognition: FakeRecognition;
  deliverer: ReturnType<typeof createFakeDeliverer>;
  clock: ReturnType<typeof createTestClock>;
  logger: ReturnType<typeof createTestLogger>;
  /** Opens a desk; earlier ones stay open until closed or until the end. */
  open(options?: { objects?: ObjectStore; node?: string }): VoiceDesk;
  otherObjects(): Promise<ObjectStore>;
  /** A member of a new workspace whose webhook receives all voice events. */
  caller(): Promise<VoiceCaller>;
  /** A request with files of these bytes, or without files. */
  request(by: VoiceCaller, files: readonly Buffer[] | null): Promise<CreateVoiceRequest>;
  /** Waits until the voice has this status. */
  becomes(desk: VoiceDesk, voice: VoiceView, by: VoiceCaller, status: VoiceView['status']): Promise<VoiceView>;
  stored(): Promise<string[]>;
  filesOf(voiceId: string): Promise<string[]>;
  webhookEvents(by: VoiceCaller): Promise<{ event: string; data: Record<string, unknown> }[]>;
}

export async function createVoiceFixture(): Promise<VoiceFixture> {
  const database = await createTestDatabase();
  const { sql } = database;
  const folder = await mkdtemp(join(tmpdir(), 'tandem-voices-'));
  const objectsDir = join(folder, 'objects');
  const objects = await openObjectStore({ folder: objectsDir });
  const synthesis = new FakeSynthesis();
  const recognition = new FakeRecognition();
  const analysis = { durationMs: 0, speechMs: 0, snrDb: 20, utterances: 1, isSilent: false };
  const listening = { listenToFile: async () => analysis };
  const deliverer = createFakeDeliverer();
  const clock = createTestClock();
  const logger = createTestLogger();
  const desks: VoiceDesk[] = [];

  async function stored(): Promise<string[]> {
    const entries = await readdir(objectsDir, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(objectsDir.length + 1));
  }

  return {
    database,
    objects,
    synthesis,
    recognition,
    deliverer,
    clock,
    logger,

    open(options = {}) {
      const catalogue = createVoiceCatalogue(synthesis.available, { preferred: 'auto' });
      const parts = { synthesis, catalogue, recognition, listening, deliverer, clock, logger, node: 'node-1' };
      const tempDir = join(folder, `tmp-${desks.length}`);
      const desk = createVoiceDesk({ sql, objects, ...parts, tempDir, ...options });
      desks.push(desk);
      return desk;
    },

    otherObjects: async () => await openObjectStore({ folder: await mkdtemp(join(folder, 'other-')) }),

    async caller() {
      const { workspace, user } = await seedWorkspace(sql);
      const events = ['voice.created', 'voice.ready', 'voice.failed'] as const;
      const hook = { id: randomUUID(), url: 'https://hooks.example.com/', events, secretEncrypted: Buffer.from('x') };
      await createWebhook(sql, { ...hook, workspaceId: workspace.id, now: new Date(clock.now()) });
      const from = { requestId: 'request-1', address: '192.0.2.7' };
      return { workspaceId: workspace.id, userId: user.id, apiKeyId: null, ...from };
    },

    async request(by, files) {
      const labels = { gender: null, accent: null, age: null, more: {} };
      const voice = { name: 'Asha', description: null, language: 'en', labels, by };
      if (files === null) return { ...voice, samples: null };
      const uploads = await mkdtemp(join(folder, 'upload-'));
      const given = [];
      for (const [index, bytes] of files.entries()) {
        const path = join(uploads, `upload-${index}`);
        await writeFile(path, bytes);
        given.push({ path, name: null, mediaType: null });
      }
      return { ...voice, samples: { files: given, folder: uploads, signal: new AbortController().signal } };
    },

    becomes: (desk, { id }, { workspaceId }, status) =>
      eventually(async () => {
        const view = await desk.get({ workspaceId, voiceId: id });
        if (view.status !== status) throw new Error(`it is ${view.status}: ${view.error}`);
        return view;
      }),

    stored,
    filesOf: async (voiceId) => (await stored()).filter((key) => key.includes(voiceId)),

    async webhookEvents({ workspaceId }) {
      const rows = await sql<{ body: string }[]>`
        select body from deliveries where workspace_id = ${workspaceId} order by created_at, event`;
      return rows.map(({ body }) => {
        const { event, data } = JSON.parse(body);
        return { event, data };
      });
    },

    async [Symbol.asyncDispose]() {
      await Promise.all(desks.map((desk) => desk.close()));
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
