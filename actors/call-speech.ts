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
 * What the agents of calls are told: an announcement on answering, a whisper when the talk begins. It is read when a
 * call is placed and made while the agent's phone rings, and it is stored nowhere: should the process die, nobody makes
 * the call again.
 */
export interface CallSpeechDesk {
  /** @throws TandemError `INVALID_ANNOUNCE`, `INVALID_WHISPER`, `VOICE_NOT_FOUND`, `VOICE_NOT_READY` */
  read(request: SpeechRequest): Promise<CallScripts>;
  /** Nothing is made yet. Aborting ends it. */
  of(scripts: CallScripts, call: { callId: string; signal: AbortSignal }): CallSpeech;
}

export type SpeechRequest = Pick<PlaceCallRequest, 'workspaceId' | 'announce' | 'whisper' | 'voiceId'>;

export interface CallScripts extends Record<SpeechName, CallScript | null> {
  /** Null: there is no voice to say it. */
  recipe: VoiceRecipe | null;
}

export interface CallScript {
  script: Script;
  /** That the text switches to in its markup. */
  voices: readonly VoiceRecipe[];
}

/** What the agent of one call is told. */
export interface CallSpeech {
  /** Begins to make the announcement, and then, or when that is given up, the whisper. Never throws. */
  prepare(): void;
  /**
   * Linear, 16 kHz, for the one who says it; waited for a moment. What is too long is cut.
   * @throws UnspokenError
   */
  take(speech: SpeechName): Promise<Int16Array<ArrayBuffer>>;
}

/** Why something is not said: a message that a client may read, and that repeats nothing of the text. */
export class UnspokenError extends Error {
  override readonly name = 'UnspokenError';
}

export const NOTHING_TO_SAY: CallScripts = { announcement: null, whisper: null, recipe: null };

export interface CallSpeechOptions {
  synthesis: Pick<SpeechSynthesis, 'speak'>;
  voices: Pick<VoiceDesk, 'resolve'>;
  readScript: ReadScript;
  clock: Clock;
  logger: Logger;
}

/** An engine that takes longer will not be in time. */
const MADE_WITHIN_MS = 20_000;
/** The agent hears nothing meanwhile, or the talk has begun. */
const TAKEN_WITHIN_MS = 3_000;

export function createCallSpeechDesk(options: CallSpeechOptions): CallSpeechDesk {
  return {
    async read(request) {
      const { announce, whisper } = request;
      if (announce === null && whisper === null) return NOTHING_TO_SAY;
      const voice = await voiceFor(request, options);
      const { workspaceId } = request;
      const readAs = async (text: string | null, refusal: { code: ErrorCode; path: string }) =>
        text === null ? null : await read(text, { ...refusal, workspaceId, voice, ...options });
      return {
        announcement: await readAs(announce, { code: 'INVALID_ANNOUNCE', path: 'announce' }),
        whisper: await readAs(whisper, { code: 'INVALID_WHISPER', path: 'whisper' }),
        recipe: voice?.recipe ?? null,
      };
    },

    of(scripts, call) {
      let unmade = scripts;
      const making = new Map<SpeechName, Making>();
      return {
        prepare() {
          const wanted = unmade;
          // The text is kept no longer than it is needed; the call may last for hours.
          unmade = NOTHING_TO_SAY;
          // One after the other: when many calls begin at once, all want their announcements before any whisper.
          let before: Promise<unknown> = Promise.resolve();
          for (const speech of ['announcement', 'whisper'] as const) {
            if (wanted[speech] === null) continue;
            const made = startMaking(wanted, speech, { ...options, ...call, before });
            making.set(speech, made);
            before = made.samples.catch(noMatter);
          }
        },
        async take(speech) {
          const made = making.get(speech);
          if (made === undefined) throw new UnspokenError('it was not prepared');
          making.delete(speech);
          const timer = options.clock.setTimeout(made.giveUp, TAKEN_WITHIN_MS);
          return await made.samples.finally(() => options.clock.clearTimeout(timer));
        },
      };
    },
  };
}

/** A voice that was asked for must be there; without one the call can still be made. */
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

interface Making {
  /** Rejects with UnspokenError. */
  samples: Promise<Int16Array<ArrayBuffer>>;
  /** It is too late now: nobody makes it any further. */
  giveUp: () => void;
}

function startMaking(
  scripts: CallScripts,
  speech: SpeechName,
  { before, ...options }: Omit<MakingOptions, 'late'> & { before: Promise<unknown> },
): Making {
  const late = new AbortController();
  const giveUp = () => late.abort(new UnspokenError('it was not made in time'));
  const samples = before.then(async () => {
    const timer = options.clock.setTimeout(giveUp, MADE_WITHIN_MS);
    return await make(scripts, speech, { ...options, late: late.signal }).finally(() => {
      options.clock.clearTimeout(timer);
    });
  });
  // Whoever takes it gets to know; nobody may.
  samples.catch(noMatter);
  return { samples, giveUp };
}

interface MakingOptions extends CallSpeechOptions {
  callId: string;
  signal: AbortSignal;
  late: AbortSignal;
}

/** @throws UnspokenError */
async function make(
  scripts: CallScripts,
  speech: SpeechName,
  options: MakingOptions,
): Promise<Int16Array<ArrayBuffer>> {
  const { [speech]: said, recipe } = scripts;
  if (said === null) throw new UnspokenError('there is nothing to say');
  if (recipe === null) throw new UnspokenError('there is no voice to say it');
  const { logger, callId } = options;
  const signal = AbortSignal.any([options.signal, options.late]);
  try {
    signal.throwIfAborted();
    return await raceAbort(spoken({ ...said, recipe }, { ...options, signal }), signal);
  } catch (error) {
    if (options.signal.aborted) throw new UnspokenError('the call is over', { cause: error });
    const code = error instanceof SynthesizerError ? error.code : (error as Error).name;
    // Not the error itself: it may repeat the text.
    logger.warn({ callId, speech, code }, 'announcement or whisper could not be synthesised');
    throw error instanceof UnspokenError ? error : new UnspokenError(reasonOf(error), { cause: error });
  }
}

async function spoken(
  request: CallScript & { recipe: VoiceRecipe },
  { synthesis, signal }: MakingOptions,
): Promise<Int16Array<ArrayBuffer>> {
  const samples = await speakLinear(request, { synthesis, longestMs: LONGEST_SPEECH_MS, signal });
  if (samples.length === 0) throw new UnspokenError('the speech engine said nothing');
  return samples;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof SynthesizerError)) return 'the speech engine failed';
  if (error.code === 'unknown_voice' || error.code === 'model') return 'the voice is not there any more';
  if (error.code === 'unsayable') return 'the voice can say nothing of it';
  return error.code === 'unavailable' ? 'the speech engine is not available' : 'the speech engine failed';
}

function noMatter(): void {}
