import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  AddSamplesRequest,
  CreateVoiceRequest,
  SpeakableVoice,
  VoiceCaller,
  VoiceDesk,
  VoiceKey,
  VoicePatch,
  VoiceUpload,
  VoiceView,
} from '../../actors/voices/voice-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import type { VoiceTier } from '../../speech/voices/catalogue.ts';
import { PLAIN_CHARACTER, type VoiceRecipe } from '../../speech/voices/voice-recipe.ts';

/** A voice of every workspace, by its id and as `en-us`. */
export const FAKE_VOICE: VoiceView = {
  id: '3f1f5a0e-1a8c-8d1e-9b7a-2f6b8c0d4e11',
  name: 'English (United States)',
  tier: 'fast',
  status: 'ready',
  error: null,
  isCustom: false,
  approximate: null,
  language: 'en',
  languageName: 'English',
  gender: 'male',
  accent: 'American',
  age: null,
  wordsPerMinute: 150,
  description: 'As the engine has it.',
  categories: ['Conversational'],
  createdAt: new Date('2026-01-01T00:00:00.000Z'),
  updatedAt: new Date('2026-01-01T00:00:00.000Z'),
};

export const FAKE_RECIPE: VoiceRecipe = {
  engine: 'espeak-ng',
  model: 'espeak-ng',
  engineVoice: 'en-us',
  language: 'en-us',
  own: null,
  character: { ...PLAIN_CHARACTER, wordsPerMinute: 150 },
  reference: null,
};

/** Voices in memory; records requests and really receives uploaded files. */
export class FakeVoiceDesk implements VoiceDesk {
  own = new Map<string, VoiceView & { workspaceId: string }>();
  created: CreateVoiceRequest[] = [];
  added: AddSamplesRequest[] = [];
  updated: { voiceId: string; patch: VoicePatch; by: VoiceCaller }[] = [];
  /** Thrown by the next request. */
  refusal: unknown = null;
  sampleKey: string | null = 'voice-samples/0a1b2c.mp3';
  uploads = 0;

  async resolve({ workspaceId, voiceId }: { workspaceId: string; voiceId: string | null }): Promise<SpeakableVoice> {
    const voice = this.#find({ workspaceId, voiceId: voiceId ?? FAKE_VOICE.id });
    if (voice.status !== 'ready') throw new TandemError('VOICE_NOT_READY', 'The voice is being made.');
    return { id: voice.id, recipe: FAKE_RECIPE };
  }

  async list({ workspaceId, tier, unready = false }: { workspaceId: string; tier: VoiceTier; unready?: boolean }) {
    const own = [...this.own.values()].filter((voice) => voice.workspaceId === workspaceId);
    return [...own.filter(({ status }) => unready || status === 'ready'), FAKE_VOICE].filter(
      (voice) => voice.tier === tier,
    );
  }

  async get(key: VoiceKey): Promise<VoiceView> {
    return this.#find(key);
  }

  async beginUpload(): Promise<VoiceUpload> {
    this.#refuse();
    this.uploads += 1;
    const folder = join(tmpdir(), `tandem-voices-${randomUUID()}`);
    await mkdir(folder);
    let isOpen = true;
    return {
      folder,
      end: async () => {
        if (isOpen) this.uploads -= 1;
        isOpen = false;
        await rm(folder, { recursive: true, force: true });
      },
    };
  }

  async create(request: CreateVoiceRequest): Promise<VoiceView> {
    this.#refuse();
    this.created.push(request);
    const { name, description, language, by, samples } = request;
    const status = samples === null ? 'pending' : 'processing';
    const tier = samples === null ? 'quality' : 'fast';
    const custom = { id: randomUUID(), isCustom: true, name, description, language, status, tier } as const;
    const voice = { ...FAKE_VOICE, ...custom, workspaceId: by.workspaceId };
    this.own.set(voice.id, voice);
    return voice;
  }

  async addSamples(request: AddSamplesRequest): Promise<{ voice: VoiceView; sampleMs: number }> {
    this.#refuse();
    this.added.push(request);
    const voice = this.#findOwn(request.voiceId, request.by);
    if (request.isLast) voice.status = 'processing';
    return { voice, sampleMs: 94_230 };
  }

  async update(request: { voiceId: string; patch: VoicePatch; by: VoiceCaller }): Promise<VoiceView> {
    this.#refuse();
    this.updated.push(request);
    return Object.assign(this.#findOwn(request.voiceId, request.by), request.patch);
  }

  async remove({ voiceId, by }: { voiceId: string; by: VoiceCaller }): Promise<void> {
    this.#refuse();
    this.own.delete(this.#findOwn(voiceId, by).id);
  }

  async sample(): Promise<string | null> {
    this.#refuse();
    return this.sampleKey;
  }

  async start(): Promise<void> {}

  async close(): Promise<void> {}

  #refuse(): void {
    const { refusal } = this;
    this.refusal = null;
    if (refusal !== null) throw refusal;
  }

  #find({ workspaceId, voiceId }: VoiceKey): VoiceView {
    const asked = voiceId.toLowerCase();
    if (asked === FAKE_VOICE.id || asked === 'en-us') return FAKE_VOICE;
    const voice = this.own.get(asked);
    if (voice?.workspaceId !== workspaceId) throw new TandemError('VOICE_NOT_FOUND', 'There is no such voice.');
    return voice;
  }

  #findOwn(voiceId: string, { workspaceId }: VoiceCaller): VoiceView {
    const voice = this.#find({ workspaceId, voiceId });
    if (!voice.isCustom) throw new TandemError('VOICE_NOT_EDITABLE', 'This voice comes with the platform.');
    return voice;
  }
}
