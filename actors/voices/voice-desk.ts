import type { VoiceAccent, VoiceLikeness, VoiceTier } from '../../speech/voices/catalogue.ts';
import type { VoiceRecipe } from '../../speech/voices/voice-recipe.ts';

export interface VoiceDesk {
  /**
   * Resolves the voice for a text. Null `voiceId`: the default voice, or one similar to `like`.
   * @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_READY`
   */
  resolve(options: ResolveVoice): Promise<SpeakableVoice>;
  /** Lists voices of the tier, the workspace's own first. `unready` includes unfinished ones. */
  list(options: { workspaceId: string; tier: VoiceTier; unready?: boolean }): Promise<VoiceView[]>;
  /** @throws TandemError `VOICE_NOT_FOUND` */
  get(options: VoiceKey): Promise<VoiceView>;

  /**
   * Reserves room for the files of a request before reading it.
   * @throws TandemError `RATE_LIMITED`, `SHUTTING_DOWN`
   */
  beginUpload(options: { userId: number }): Promise<VoiceUpload>;
  /**
   * Creates a voice. With samples it is an instant clone (`fast`) and `processing`; without, a professional voice
   * (`quality`) and `pending`. If any sample is unusable, none is kept.
   * @throws TandemError `unsupported_language`, `VOICE_LIMIT_REACHED`, `VOICE_SAMPLE_UNUSABLE`, `SHUTTING_DOWN`, the
   * `AUDIO_` codes; the signal's reason
   */
  create(request: CreateVoiceRequest): Promise<VoiceView>;
  /**
   * Adds samples to a professional voice. Processing starts with `isLast` or enough speech.
   * @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_EDITABLE`, `VOICE_NOT_READY` during processing, or if another
   * node has its samples, `VOICE_SAMPLE_UNUSABLE`, `SHUTTING_DOWN`, the `AUDIO_` codes; the signal's reason
   */
  addSamples(request: AddSamplesRequest): Promise<{ voice: VoiceView; sampleMs: number }>;
  /** @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_EDITABLE` */
  update(request: { voiceId: string; patch: VoicePatch; by: VoiceCaller }): Promise<VoiceView>;
  /**
   * Deletes the voice and all data of the speaker. Texts in progress continue.
   * @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_EDITABLE`
   */
  remove(request: { voiceId: string; by: VoiceCaller }): Promise<void>;
  /**
   * Returns the object key of an example sentence, and creates it if missing. Null: it failed or takes too long.
   * @throws TandemError `VOICE_NOT_FOUND`
   */
  sample(options: VoiceKey): Promise<string | null>;
  /** Resumes the work of this node's earlier boots. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface VoiceKey {
  workspaceId: string;
  /** An id, or a short name in the catalogue. */
  voiceId: string;
}

export interface ResolveVoice {
  workspaceId: string;
  voiceId: string | null;
  text?: string;
  like?: VoiceLikeness;
}

export interface SpeakableVoice {
  id: string;
  recipe: VoiceRecipe;
}

export interface VoiceView {
  id: string;
  name: string;
  tier: VoiceTier;
  status: VoiceStatus;
  /** Reason of a failure, for users. */
  error: string | null;
  isCustom: boolean;
  /** True: only pitch and pace match the speaker. False: a clone. Null for catalogue voices. */
  approximate: boolean | null;
  language: string;
  languageName: string;
  gender: 'female' | 'male';
  accent: string;
  age: string | null;
  wordsPerMinute: number | null;
  description: string | null;
  categories: string[];
  createdAt: Date;
  updatedAt: Date;
}

export type VoiceStatus = 'pending' | 'processing' | 'ready' | 'failed';

export interface VoiceUpload {
  /** Empty at first. */
  readonly folder: string;
  /** Deletes the files. Idempotent. */
  end(): Promise<void>;
}

export interface CreateVoiceRequest {
  name: string;
  description: string | null;
  /** ISO 639. */
  language: string;
  labels: VoiceLabels;
  samples: GivenSamples | null;
  by: VoiceCaller;
}

export interface AddSamplesRequest {
  voiceId: string;
  samples: GivenSamples;
  isLast: boolean;
  by: VoiceCaller;
}

/** Speech of a speaker who, the client declares, consented to the cloning. */
export interface GivenSamples {
  files: readonly VoiceFile[];
  /** `VoiceUpload.folder`, for decoded samples. */
  folder: string;
  signal: AbortSignal;
}

export interface VoiceFile {
  path: string;
  name: string | null;
  mediaType: string | null;
}

export interface VoiceLabels {
  gender: 'female' | 'male' | null;
  accent: VoiceAccent | null;
  age: string | null;
  more: Readonly<Record<string, string>>;
}

export interface VoicePatch {
  name?: string | undefined;
  description?: string | null | undefined;
}

export interface VoiceCaller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  requestId: string;
  address: string;
}
