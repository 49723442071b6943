import type { SpeechName } from '../machines/call-events.ts';
import { LONGEST_SPEECH_MS } from '../machines/call-setup.ts';
import { type ErrorCode, TandemError } from '../machines/errors.ts';
import type { Clock } from '../runtime/clock.ts';
import { raceAbort } from '../runtime/waiting.ts';
import type { SpeechSynthesis } from '../speech/speech-synthesis.ts';
import { SynthesizerError } from '../speech/synthesizer.ts';
import type { Script } from '../speech/text/script.ts';
import type { VoiceRecipe } from '../speech/voices/voice-recipe.ts';
import type { PlaceCallRequest } from './dialer.ts';
import type { Logger } from './logger.ts';
import { speakLinear } from './tts/linear-speech.ts';
import { type ReadScript, scriptOf } from './tts/speech-refusals.ts';
import { switchedVoices } from './tts/switched-voices.ts';
import type { SpeakableVoice, VoiceDesk } from './voices/voice-desk.ts';

/**
 * Synthesises texts for agents: an announcement on answering and a whisper as the talk begins. Texts are read when the
 * call is placed and synthesised while the agent's phone rings. They are never stored, so a crash loses them.
 */
export interface CallSpeechDesk {
  /** @throws TandemError `INVALID_ANNOUNCE`, `INVALID_WHISPER`, `VOICE_NOT_FOUND`, `VOICE_NOT_READY` */
  read(request: SpeechRequest): Promise<CallScripts>;
  /** Synthesises nothing before `prepare`. Aborting the signal ends it. */
  of(scripts: CallScripts, call: { callId: string; signal: AbortSignal }): CallSpeech;
}

export type SpeechRequest = Pick<PlaceCallRequest, 'workspaceId' | 'announce' | 'whisper' | 'voiceId'>;

export interface CallScripts extends Record<SpeechName, CallScript | null> {
  /** Null: no voice is available. */
  recipe: VoiceRecipe | null;
}

export interface CallScript {
  script: Script;
  /** Voices that the text's markup switches to. */
  voices: readonly VoiceRecipe[];
}

export interface CallSpeech {
  /** Starts to synthesise the announcement, then, once that is done or given up, the whisper. Never throws. */
  prepare(): void;
  /**
   * Linear, 16 kHz. Waits briefly for the samples and cuts those that are too long. Call it once per speech.
   * @throws SpeechUnavailableError
   */
  take(speech: SpeechName): Promise<Int16Array<ArrayBuffer>>;
}

/** An announcement or whisper is not played. Clients may read the message, so it contains nothing of the text. */
export class SpeechUnavailableError extends Error {
  override readonly name = 'SpeechUnavailableError';
}

export const NOTHING_TO_SAY: CallScripts = { announcement: null, whisper: null, recipe: null };

export interface CallSpeechOptions {
  synthesis: Pick<SpeechSynthesis, 'speak'>;
  voices: Pick<VoiceDesk, 'resolve'>;
  readScript: ReadScript;
  clock: Clock;
  logger: Logger;
}

/** A slower engine would miss the moment to speak. */
const SYNTHESIS_TIMEOUT_MS = 20_000;
/** Meanwhile the agent hears nothing, or the talk has already begun. */
const TAKE_TIMEOUT_MS = 3_000;

export function createCallSpeechDesk(options: CallSpeechOptions): CallSpeechDesk {
  return {
    async read(request) {
      const { announce, whisper } = request;
      if (announce === null && whisper === null) return NOTHING_TO_SAY;
      const voice = await voiceFor(request, options);
      const { workspaceId } = request;
      const readAs = async (text: string | null, refusal: { code: ErrorCode; path: string }) =>
        text === null ? null : await read(text, { ...options, ...refusal, workspaceId, voice });
      return {
        announcement: await readAs(announce, { code: 'INVALID_ANNOUNCE', path: 'announce' }),
        whisper: await readAs(whisper, { code: 'INVALID_WHISPER', path: 'whisper' }),
        recipe: voice?.recipe ?? null,
      };
    },

    of(scripts, call) {
      let unprepared = scripts;
      const syntheses = new Map<SpeechName, Synthesis>();
      return {
        prepare() {
          const prepared = unprepared;
          // Do not keep the texts: the call may last for hours.
          unprepared = NOTHING_TO_SAY;
          // In order: when many calls begin at once, all announcements come before any whisper.
          let before: Promise<unknown> = Promise.resolve();
          for (const speech of ['announcement', 'whisper'] as const) {
            if (prepared[speech] === null) continue;
            const started = startSynthesis(prepared, speech, { ...options, ...call, before });
            syntheses.set(speech, started);
            before = started.samples.catch(ignore);
          }
        },
        async take(speech) {
          const started = syntheses.get(speech);
          if (started === undefined) throw new SpeechUnavailableError('it was not prepared');
          syntheses.delete(speech);
          const timer = options.clock.setTimeout(started.giveUp, TAKE_TIMEOUT_MS);
          return await started.samples.finally(() => options.clock.clearTimeout(timer));
        },
      };
    },
  };
}

/** A requested voice must exist. Without a default voice, the call is placed without speech. */
async function voiceFor({ workspaceId, voiceId, announce, whisper }: SpeechRequest, { voices }: CallSpeechOptions) {
  try {
    return await voices.resolve({ workspaceId, voiceId, text: announce ?? whisper ?? '' });
  } catch (error) {
    if (voiceId === null && error instanceof TandemError) return null;
    throw error;
  }
}

async function read(
  text: string,
  { code, path, workspaceId, voice, voices, readScript }: ReadingOptions,
): Promise<CallScript> {
  try {
    const switched = voice === null ? null : await switchedVoices(text, { workspaceId, voice, voices });
    const language = voice?.recipe.language ?? 'en-us';
    const script = scriptOf(text, { language, voiceLanguages: switched?.languages ?? [], readScript });
    return { script, voices: switched?.recipes ?? [] };
  } catch (cause) {
    if (!(cause instanceof TandemError) || cause.code.startsWith('VOICE_')) throw cause;
    throw new TandemError(code, `${path}: ${cause.message}`, { cause, details: [{ path, message: cause.message }] });
  }
}

interface ReadingOptions extends CallSpeechOptions {
  code: ErrorCode;
  path: string;
  workspaceId: string;
  voice: SpeakableVoice | null;
}

interface Synthesis {
  /** Rejects with SpeechUnavailableError. */
  samples: Promise<Int16Array<ArrayBuffer>>;
  /** Aborts the synthesis, because it is too late. */
  giveUp: () => void;
}

function startSynthesis(
  scripts: CallScripts,
  speech: SpeechName,
  { before, ...options }: Omit<SynthesisOptions, 'late'> & { before: Promise<unknown> },
): Synthesis {
  const late = new AbortController();
  const giveUp = () => late.abort(new SpeechUnavailableError('it was not made in time'));
  const samples = before.then(async () => {
    const timer = options.clock.setTimeout(giveUp, SYNTHESIS_TIMEOUT_MS);
    return await make(scripts, speech, { ...options, late: late.signal }).finally(() => {
      options.clock.clearTimeout(timer);
    });
  });
  // `take` may never be called; avoids an unhandled rejection.
  samples.catch(ignore);
  return { samples, giveUp };
}

interface SynthesisOptions extends CallSpeechOptions {
  callId: string;
  signal: AbortSignal;
  late: AbortSignal;
}

/** @throws SpeechUnavailableError */
async function make(
  scripts: CallScripts,
  speech: SpeechName,
  options: SynthesisOptions,
): Promise<Int16Array<ArrayBuffer>> {
  const { [speech]: script, recipe } = scripts;
  if (script === null) throw new SpeechUnavailableError('there is nothing to say');
  if (recipe === null) throw new SpeechUnavailableError('there is no voice to say it');
  const { logger, callId } = options;
  const signal = AbortSignal.any([options.signal, options.late]);
  try {
    signal.throwIfAborted();
    return await raceAbort(speakScript({ ...script, recipe }, { ...options, signal }), signal);
  } catch (error) {
    if (options.signal.aborted) throw new SpeechUnavailableError('the call is over', { cause: error });
    const code = error instanceof SynthesizerError ? error.code : (error as Error).name;
    // Do not log the error itself: it may repeat the text.
    logger.warn({ callId, speech, code }, 'announcement or whisper could not be synthesised');
    throw error instanceof SpeechUnavailableError
      ? error
      : new SpeechUnavailableError(reasonOf(error), { cause: error });
  }
}

async function speakScript(
  request: CallScript & { recipe: VoiceRecipe },
  { synthesis, signal }: SynthesisOptions,
): Promise<Int16Array<ArrayBuffer>> {
  const samples = await speakLinear(request, { synthesis, longestMs: LONGEST_SPEECH_MS, signal });
  if (samples.length === 0) throw new SpeechUnavailableError('the speech engine said nothing');
  return samples;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof SynthesizerError)) return 'the speech engine failed';
  if (error.code === 'unknown_voice' || error.code === 'model') return 'the voice is not there any more';
  if (error.code === 'unsayable') return 'the voice can say nothing of it';
  return error.code === 'unavailable' ? 'the speech engine is not available' : 'the speech engine failed';
}

function ignore(): void {}
