import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TandemError } from '../machines/errors.ts';
import { readPlayedAudio } from '../media/audio-file/played-audio.ts';
import { Gate, GateFullError } from '../runtime/gate.ts';
import type { SpeechSynthesis } from '../speech/speech-synthesis.ts';
import type { Script } from '../speech/text/script.ts';
import type { Sql } from '../storage/database.ts';
import { requireCredits, walletOf } from '../storage/ledger.ts';
import { costOf, priceBookOf } from '../storage/price-book.ts';
import type { Resolve } from './callbacks/callback-url.ts';
import type { Cidr } from './callbacks/public-address.ts';
import { safeDownload } from './callbacks/safe-download.ts';
import { speakLinear } from './tts/linear-speech.ts';
import { engineRefusal, type ReadScript, scriptOf } from './tts/speech-refusals.ts';
import { switchedVoices } from './tts/switched-voices.ts';
import type { VoiceDesk } from './voices/voice-desk.ts';

/** Source of a sound for live calls: a text to synthesise, or an audio file. */
export type SoundSource =
  | { kind: 'text'; text: string; voiceId: string | null }
  /** Fetched for each request. */
  | { kind: 'url'; url: string };

export interface CallSound {
  /** Linear, 16 kHz, mono. */
  samples: Int16Array<ArrayBuffer>;
  /** Billed characters of a text, charged when playback begins; null for a file. */
  characters: number | null;
}

/** Prepares sounds for live calls on request. It stores and charges nothing. */
export interface CallSoundDesk {
  /**
   * @throws TandemError `VALIDATION_FAILED`, `INVALID_SSML`, `VOICE_NOT_FOUND`, `VOICE_NOT_READY`, `INSUFFICIENT_CREDITS`,
   * `TTS_UNAVAILABLE`; `INVALID_PLAYBACK_URL`, `PLAYBACK_URL_UNREACHABLE`, the `AUDIO_` codes; `CONTROL_BUSY`; the
   * signal's reason when aborted
   */
  make(source: SoundSource, request: { workspaceId: string; signal: AbortSignal }): Promise<CallSound>;
}

export interface CallSoundDeskOptions {
  sql: Sql;
  synthesis: Pick<SpeechSynthesis, 'speak'>;
  voices: Pick<VoiceDesk, 'resolve'>;
  readScript: ReadScript;
  /** Folder for files that are being decoded. */
  tempDir: string;
  /** Private networks that files may be fetched from. */
  allowCidrs: readonly Cidr[];
  resolve?: Resolve;
  /** Longest wait for other sounds, at each of two queues. Default: 10 s. */
  patienceMs?: number;
}

export const LONGEST_SOUND_MS = 300_000;
const MOST_FILE_BYTES = 25_000_000;
const FETCHED_WITHIN_MS = 15_000;
/** Longest that a request waits for synthesis. */
const SYNTHESIS_TIMEOUT_MS = 30_000;
/** Each sound runs an engine or a decoder. */
const MOST_AT_ONCE = { inAll: 4, perLane: 2, waiting: 64, waitingPerLane: 16 };
/** Separate, because a slow server of one customer must not delay the sounds of others. Bounds the files on disk. */
const MOST_FETCHED_AT_ONCE = { ...MOST_AT_ONCE, inAll: 16 };
/** With the times above, less than another node waits for the answer to a request. */
const PATIENCE_MS = 10_000;

export function createCallSoundDesk(options: CallSoundDeskOptions): CallSoundDesk {
  const { patienceMs = PATIENCE_MS } = options;
  const engines = new Gate(MOST_AT_ONCE);
  const fetches = new Gate(MOST_FETCHED_AT_ONCE);
  return {
    async make(source, { workspaceId, signal }) {
      const pass = { lane: workspaceId, signal, patienceMs };
      const decoding: Decoding = (decode) => engines.run(decode, pass);
      try {
        return source.kind === 'text'
          ? await engines.run(() => synthesise(source, { ...options, workspaceId, signal }), pass)
          : await fetches.run(() => fetchFile(source.url, { ...options, signal, decoding }), pass);
      } catch (error) {
        if (!(error instanceof GateFullError)) throw error;
        throw new TandemError('CONTROL_BUSY', 'Too many sounds are being prepared. Try again in a few seconds.', {
          cause: error,
          retryAfterS: 5,
        });
      }
    },
  };
}

interface MakingOptions extends CallSoundDeskOptions {
  signal: AbortSignal;
}

async function synthesise(
  { text, voiceId }: { text: string; voiceId: string | null },
  { sql, synthesis, voices, readScript, workspaceId, signal }: MakingOptions & { workspaceId: string },
): Promise<CallSound> {
  const voice = await voices.resolve({ workspaceId, voiceId, text });
  const { recipe } = voice;
  const switched = await switchedVoices(text, { workspaceId, voice, voices });
  const script = scriptOf(text, { language: recipe.language, voiceLanguages: switched.languages, readScript });
  await requireCovered(sql, { workspaceId, script });
  const late = AbortSignal.timeout(SYNTHESIS_TIMEOUT_MS);
  try {
    const request = { synthesis, longestMs: LONGEST_SOUND_MS, signal: AbortSignal.any([signal, late]) };
    const samples = await speakLinear({ script, recipe, voices: switched.recipes }, request);
    if (samples.length === 0) throw new Error('the speech engine said nothing');
    return { samples, characters: script.characters };
  } catch (error) {
    signal.throwIfAborted();
    throw engineRefusal(error, { isRefunded: true });
  }
}

/**
 * Rejects early what the wallet cannot cover. The charge follows when playback begins; if the wallet cannot cover it
 * then, nothing is charged.
 */
async function requireCovered(sql: Sql, { workspaceId, script }: { workspaceId: string; script: Script }) {
  const { amountNano } = costOf(await priceBookOf(sql, workspaceId), { service: 'tts', count: script.characters });
  requireCredits(amountNano, await walletOf(sql, workspaceId));
}

/** Waits for an engine. */
type Decoding = (decode: () => Promise<CallSound['samples']>) => Promise<CallSound['samples']>;

async function fetchFile(
  url: string,
  { tempDir, allowCidrs, resolve, signal, decoding }: MakingOptions & { decoding: Decoding },
): Promise<CallSound> {
  const filePath = join(tempDir, `${randomUUID()}.played`);
  try {
    await safeDownload({
      url,
      filePath,
      mostBytes: MOST_FILE_BYTES,
      timeoutMs: FETCHED_WITHIN_MS,
      allowCidrs,
      ...(resolve && { resolve }),
      refusedAs: { code: 'INVALID_PLAYBACK_URL', field: 'url' },
      unreachableAs: 'PLAYBACK_URL_UNREACHABLE',
      signal,
    });
    const decode = () => readPlayedAudio({ filePath, tempDir, longestMs: LONGEST_SOUND_MS, signal });
    return { samples: await decoding(decode), characters: null };
  } finally {
    await rm(filePath, { force: true });
  }
}
