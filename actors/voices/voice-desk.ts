import type { VoiceAccent, VoiceLikeness, VoiceTier } from '../../speech/voices/catalogue.ts';
import type { VoiceRecipe } from '../../speech/voices/voice-recipe.ts';

/** Voices as `http/` and whoever speaks see them: those of the catalogue and those that a workspace made. */
export interface VoiceDesk {
  /**
   * What to speak with. Null `voiceId`: the usual voice, or one like `like`.
   * @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_READY`
   */
  resolve(options: ResolveVoice): Promise<SpeakableVoice>;
  /** Voices of the tier, the workspace's own first; only those that are ready, or all. */
  list(options: { workspaceId: string; tier: VoiceTier; unready?: boolean }): Promise<VoiceView[]>;
  /** @throws TandemError `VOICE_NOT_FOUND` */
  get(options: VoiceKey): Promise<VoiceView>;

  /**
   * Room for the files of a request, before anything of it is known.
   * @throws TandemError `RATE_LIMITED`, `SHUTTING_DOWN`
   */
  beginUpload(options: { userId: number }): Promise<VoiceUpload>;
  /**
   * With samples the voice is cloned (`fast`) and `processing`; without, it is a professional one (`quality`) and
   * `pending` until it has samples. Nothing is kept of samples that are not all usable.
   * @throws TandemError `unsupported_language`, `VOICE_LIMIT_REACHED`, `VOICE_SAMPLE_UNUSABLE`, `SHUTTING_DOWN`, the
   * `AUDIO_` codes; the signal's reason
   */
  create(request: CreateVoiceRequest): Promise<VoiceView>;
  /**
   * More speech for a professional voice, which is processed when `isLast` says so or there is plenty.
   * @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_EDITABLE`, `VOICE_NOT_READY` while it is processed, or
   * where another server has its samples,
   * `VOICE_SAMPLE_UNUSABLE`, `SHUTTING_DOWN`, the `AUDIO_` codes; the signal's reason
   */
  addSamples(request: AddSamplesRequest): Promise<{ voice: VoiceView; sampleMs: number }>;
  /** @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_EDITABLE` */
  update(request: { voiceId: string; patch: VoicePatch; by: VoiceCaller }): Promise<VoiceView>;
  /**
   * Removes the voice and all that was kept of the speaker. Texts that are being spoken go on.
   * @throws TandemError `VOICE_NOT_FOUND`, `VOICE_NOT_EDITABLE`
   */
  remove(request: { voiceId: string; by: VoiceCaller }): Promise<void>;
  /**
   * Key of an object with a sentence spoken by the voice, made when there is none; null when it cannot be spoken, or
   * not soon enough.
   * @throws TandemError `VOICE_NOT_FOUND`
   */
  sample(options: VoiceKey): Promise<string | null>;
  /** Takes over what an earlier run of this node left behind. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface VoiceKey {
  workspaceId: string;
  /** The id, or a short name of the catalogue. */
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
  /** Why it failed, for a person. */
  error: string | null;
  isCustom: boolean;
  /** Whether it is fitted to the speaker's pitch and pace only, and not a clone; null for voices of the catalogue. */
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

/** Files of a request, for as long as it lasts. */
export interface VoiceUpload {
  /** Of its own, and empty. */
  readonly folder: string;
  /** Removes them. Idempotent. */
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

/** What a speaker says, and has agreed to have spoken in their voice: whoever sends it says so. */
export interface GivenSamples {
  files: readonly VoiceFile[];
  /** Where decoded samples are kept meanwhile: `VoiceUpload.folder`. */
  folder: string;
  signal: AbortSignal;
}

export interface VoiceFile {
  path: string;
  /** As its sender calls it. */
  name: string | null;
  mediaType: string | null;
}

export interface VoiceLabels {
  gender: 'female' | 'male' | null;
  accent: VoiceAccent | null;
  age: string | null;
  /** Whatever else was given. */
  more: Readonly<Record<string, string>>;
}

export interface VoicePatch {
  name?: string | undefined;
  description?: string | null | undefined;
}

/** Whose request it is, and from where. */
export interface VoiceCaller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  requestId: string;
  address: string;
}
